import { createHash } from "node:crypto";
import type { ServiceNames } from "@payhooks/core";
import {
  anyCallbackFields,
  anyConnectEvent,
  asDelivery,
  type CallbackFields,
  forgedCallback,
  resplitPair,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { UsageError } from "../command-line/errors.ts";
import { parseChoice } from "../command-line/parsed-arguments.ts";
import { fieldsOnTheWire, nameOnTheWire } from "./wire.ts";

export const DELIVERY_KINDS = ["deposit", "withdrawal", "connected-account", "settlement"] as const;
export type DeliveryKind = (typeof DELIVERY_KINDS)[number];
export const FORGERIES = ["amount", "signature", "resplit"] as const;
export type ForgeryKind = (typeof FORGERIES)[number];

/** The deliveries that the user wants to send. */
export interface SendOptions {
  readonly kind: DeliveryKind;
  /** The statuses to send, in this order. Empty for the usual one. */
  readonly statuses: readonly string[];
  readonly amount: string | undefined;
  readonly reference: string | undefined;
  readonly transactionId: string | undefined;
  readonly message: string | undefined;
  readonly callbackUrl: string;
  /** Null if it is made up. */
  readonly merchantId: string | null;
  readonly events: number;
  readonly times: number;
  readonly forge: ForgeryKind | undefined;
  readonly isStale: boolean;
  readonly seed: number;
  /** Undefined for the names of the specification. */
  readonly names: ServiceNames | undefined;
}

/** One delivery, ready to be sent. */
export interface PreparedDelivery {
  readonly label: string;
  readonly id: string;
  readonly status: string;
  readonly delivery: SignedDelivery;
}

const STALE_AGE_MS = 30 * 86_400_000;

/** All deliveries, in the order in which they are sent: every event, each of its statuses, every copy. */
export function prepareDeliveries(options: SendOptions, key: string, now: number): PreparedDelivery[] {
  const isPayment = options.kind === "deposit" || options.kind === "withdrawal";
  const words = Object.values(options.names?.callback.statuses ?? {}).flat();
  const knownStatuses = isPayment ? ["PENDING", "SUCCESS", "FAILED", ...words] : ["approved", "declined"];
  const statuses = options.statuses.length === 0 ? [isPayment ? "SUCCESS" : "approved"] : options.statuses;
  for (const status of statuses) parseChoice("--status", status, knownStatuses);
  if (!isPayment) checkWebhook(options);
  if (options.forge === "resplit" && statuses.some((status) => status !== "SUCCESS")) {
    throw new UsageError("--forge resplit makes a SUCCESS out of a FAILED: leave --status out.");
  }
  const signedAt = options.isStale ? now - STALE_AGE_MS : now;
  const prepared: PreparedDelivery[] = [];
  for (let n = 1; n <= options.events; n++) {
    for (const status of statuses) {
      const delivery = isPayment
        ? callbackOf(options, n, status, key, signedAt)
        : webhookOf(options, n, status, key, signedAt);
      prepared.push(...Array.from({ length: options.times }, () => delivery));
    }
  }
  return prepared;
}

function checkWebhook({ kind, amount, forge }: SendOptions): void {
  if (forge === "resplit")
    throw new UsageError(
      "--forge resplit is a forgery of payment callbacks; webhooks have no canonical string.",
    );
  if (amount === undefined) return;
  if (kind !== "settlement")
    throw new UsageError(`--amount is for payment callbacks and settlements; a ${kind} has none.`);
  if (!/^[1-9]\d{0,14}$/.test(amount)) {
    throw new UsageError(`--amount of a settlement must be a whole number; it is ${JSON.stringify(amount)}.`);
  }
}

function callbackOf(
  options: SendOptions,
  n: number,
  status: string,
  privateKey: string,
  signedAt: number,
): PreparedDelivery {
  const { kind, reference, transactionId, message, merchantId, events, forge } = options;
  const suffix = events > 1 ? `-${n}` : "";
  // The service signed a FAILED. The forgery cuts the signed string into other fields.
  const signedStatus = forge === "resplit" ? "FAILED" : status;
  const fields = anyCallbackFields(
    {
      event: kind === "deposit" ? "DEPOSIT" : "WITHDRAWAL",
      referenceId:
        reference === undefined ? `order-${idOf(options.seed, n).slice(0, 8)}` : reference + suffix,
      payTxnId: transactionId === undefined ? idOf(options.seed, n) : transactionId + suffix,
      status: signedStatus,
      amount: amountOf(options.amount ?? "10.50"),
      callbackUrl: options.callbackUrl,
      message: message ?? STATUS_MESSAGES[signedStatus] ?? signedStatus,
      ...(status === "PENDING" && { providerTxId: null }),
      ...(merchantId !== null && { merchantId }),
    },
    signedAt,
  );
  const delivery = signOrForge(options, fields, privateKey);
  const label = `${String(fields.event)} ${status} ${String(fields.referenceId)} ${String(fields.amount)}`;
  return { label: label + markOf(options), id: String(fields.payTxnId), status, delivery };
}

const STATUS_MESSAGES: Readonly<Record<string, string>> = {
  PENDING: "The transaction is being processed.",
  SUCCESS: "The transaction was completed successfully.",
  FAILED: "The transaction failed.",
};

function signOrForge(
  { forge, names }: SendOptions,
  neutralFields: CallbackFields,
  privateKey: string,
): SignedDelivery {
  if (forge === "resplit")
    return resplitPair(String(neutralFields.referenceId), privateKey, neutralFields, { names }).forged;
  const fields = fieldsOnTheWire(neutralFields, names);
  if (forge === "amount") {
    return forgedCallback(fields, { [nameOnTheWire("amount", names)]: "9999.000000" }, privateKey);
  }
  const signed = signPaymentCallback(fields, privateKey);
  if (forge === undefined) return signed;
  const body = JSON.parse(Buffer.from(signed.rawBody).toString("utf8")) as { signature: string };
  return asDelivery({ ...body, signature: flipCharacter(body.signature) });
}

function webhookOf(
  options: SendOptions,
  n: number,
  status: string,
  secret: string,
  signedAt: number,
): PreparedDelivery {
  const { kind, seed, amount, forge, names } = options;
  const id = idOf(seed, n);
  const name = `${kind === "settlement" ? "settlement" : "connected_account"}.${status}`;
  const data =
    kind === "settlement"
      ? {
          object: "settlement",
          id: `wd_${id}`,
          connected_account_id: `cm_${idOf(seed, -n)}`,
          amount: Number(amount ?? 125_000),
          status,
        }
      : {
          object: "connected_account",
          id: `cm_${id}`,
          master_merchant_id: `mm_${idOf(seed, -n)}`,
          kyc_status: status,
        };
  const event = anyConnectEvent(name, { idempotency_key: `evt_${idOf(seed, n, status)}`, data }, signedAt);
  const signed = signConnectWebhook(event, secret, { names });
  const label = `${name} ${data.id}${"amount" in data ? ` ${data.amount}` : ""}`;
  const forgeWebhook = (): SignedDelivery => {
    if (forge === "amount")
      return {
        ...signed,
        rawBody: Buffer.from(
          JSON.stringify({
            ...event,
            data: { ...data, ...("amount" in data ? { amount: 9_999_999 } : { kyc_status: "forged" }) },
          }),
        ),
      };
    const header = names?.connect.signatureHeader.toLowerCase() ?? "x-connect-signature";
    const other = signed.headers[header]?.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")) ?? "";
    return { ...signed, headers: { ...signed.headers, [header]: other } };
  };
  const delivery = forge === undefined ? signed : forgeWebhook();
  return { label: label + markOf(options), id: String(event.idempotency_key), status, delivery };
}

function markOf({ forge, isStale }: SendOptions): string {
  return (forge === undefined ? "" : ` (forged: ${forge})`) + (isStale ? " (signed 30 days ago)" : "");
}

/** A UUID that follows from the seed. */
function idOf(seed: number, ...parts: readonly (number | string)[]): string {
  const hex = createHash("sha256")
    .update(`${seed} ${parts.join(" ")}`)
    .digest("hex");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
}

/** An amount with six decimal places, as callbacks have it. */
function amountOf(text: string): string {
  const [, whole = "", fraction = ""] = /^(\d{1,15})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === "") {
    throw new UsageError(
      `--amount must be digits with up to six decimals, such as 10.50; it is ${JSON.stringify(text)}.`,
    );
  }
  return `${whole}.${fraction.padEnd(6, "0")}`;
}

/** Changes one character in the middle. The result is still base64, of the same length. */
function flipCharacter(signature: string): string {
  const index = Math.floor(signature.length / 2);
  return signature.slice(0, index) + (signature[index] === "A" ? "B" : "A") + signature.slice(index + 1);
}
