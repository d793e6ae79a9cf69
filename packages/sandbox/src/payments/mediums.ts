import { randomInt } from "node:crypto";
import type { Medium } from "../wire.ts";

interface MediumTexts {
  /** The name on the hosted page. */
  readonly name: string;
  /** The beginning of the provider's transaction ids. */
  readonly prefix: string;
  /** The `message` of a FAILED transaction. */
  readonly failure: string;
  /** The `details.RawMessage` of a FAILED transaction. */
  readonly rawFailure: string;
}

/** The texts of each provider. The specification shows none, so these are made up, and different for each provider. */
export const MEDIUM_TEXTS: Readonly<Record<Medium, MediumTexts>> = {
  MPESA: {
    name: "M-Pesa",
    prefix: "MP",
    failure: "The balance is insufficient for the transaction.",
    rawFailure: "ResultCode 1: The balance is insufficient for the transaction.",
  },
  TELEBIRR: {
    name: "telebirr",
    prefix: "TB",
    failure: "The customer did not confirm the payment in time.",
    rawFailure: "PAY_TIMEOUT: order expired before it was confirmed",
  },
  CBE: {
    name: "CBE",
    prefix: "CB",
    failure: "The account has insufficient funds.",
    rawFailure: "E-112 INSUFFICIENT FUNDS",
  },
  ETHSWITCH: {
    name: "EthSwitch",
    prefix: "ES",
    failure: "The issuing bank declined the transaction.",
    rawFailure: "05 DO NOT HONOUR",
  },
  CYBERSOURCE: {
    name: "Card",
    prefix: "CS",
    failure: "The card was declined by its issuer.",
    rawFailure: "DECLINED reasonCode=203 GENERAL_DECLINE",
  },
  OROMIA_BANK: {
    name: "Oromia Bank",
    prefix: "OB",
    failure: "The bank rejected the debit request.",
    rawFailure: "DEBIT_REJECTED account restricted",
  },
  AWASH: {
    name: "Awash Bank",
    prefix: "AW",
    failure: "The one-time password was not accepted.",
    rawFailure: "OTP_INVALID attempts exhausted",
  },
  PAY: {
    name: "Wallet",
    prefix: "PW",
    failure: "The wallet is blocked for outgoing payments.",
    rawFailure: "WALLET_BLOCKED",
  },
};

const ID_ALPHABET = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/** A transaction id at the upstream provider. */
export function newProviderTxId(medium: Medium): string {
  const characters = Array.from({ length: 10 }, () => ID_ALPHABET[randomInt(ID_ALPHABET.length)]);
  return MEDIUM_TEXTS[medium].prefix + characters.join("");
}
