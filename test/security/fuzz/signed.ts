/** Deliveries as the service signs them, the same for the same seed: what the fuzzer starts from. */
import { createHmac } from "node:crypto";
import { canonicalString } from "@payhooks/core/signature";
import { signCanonicalString, type TestKeys } from "@payhooks/core/testing";
import { read } from "../../vectors/vectors.ts";
import type { Body } from "../oracle.ts";
import type { Random } from "../random.ts";

/** Committed, so that a seed gives the same bytes on every machine. */
export const KEYS: TestKeys = {
  publicKey: read("keys/primary.public.pem"),
  privateKey: read("keys/primary.test-private.pem"),
};
export const SECRET = "whsec_fuzz_0123456789abcdef";
/** The time that stands still in a run. */
export const NOW: number = Date.UTC(2026, 0, 15, 12);

/** A payment callback of the service. */
export interface SignedCallback {
  readonly flow: "payments";
  readonly fields: Body;
  readonly signature: string;
  /** Nobody had a say in its values: it is to be accepted as it is. */
  readonly ordinary: boolean;
}

/** A connected-account webhook of the service, not signed yet: that is cheap. */
export interface Webhook {
  readonly flow: "connect";
  readonly event: Readonly<Record<string, unknown>>;
}

export type Signed = SignedCallback | Webhook;

const TIMES = ["2026-01-15T11:59:58.123456789Z", "2026-01-14T00:00:00Z", "2025-12-01T00:00:00Z"];
const URLS = ["https://m.example/cb", "https://m.example/cb?a=1&b=2", "https://m.example/?x=1&userId=5"];
/** Texts that a customer may have chosen. */
const HOSTILE = [
  "&status=SUCCESS",
  "&status=SUCCESS&timestamp=2026-01-15T11:59:58.123456789Z&userId=u",
  "&amount=99999.000000",
  "&event=DEPOSIT&merchantId=m&message=ok&payTxnId=tx-victim&referenceId=VICTIM&status=SUCCESS",
  "&payTxnId=tx-victim&providerTxId=p&referenceId=VICTIM&status=SUCCESS",
  "&userId=victim",
  "&",
  "&=",
  "ክፍያ 💳 \u0000\u2028",
  '","status":"SUCCESS',
];
const FREE = [
  "referenceId",
  "message",
  "userId",
  "providerTxId",
  "callbackUrl",
  "accountName",
  "phone",
  "zone",
];

/** So many callbacks, a half of them with a customer's text in one of their fields. */
export function signCallbacks(count: number, random: Random): SignedCallback[] {
  return Array.from({ length: count }, (_, n) => {
    const ordinary = n % 2 === 0;
    const fields: Record<string, string> = {
      amount: random.pick(["10.500000", "0.000001", "99999.000000"]),
      callbackUrl: ordinary ? random.pick(URLS) : "https://m.example/cb",
      event: random.pick(ordinary ? ["DEPOSIT", "WITHDRAWAL"] : ["DEPOSIT", "REVERSAL", "reversal"]),
      payTxnId: `tx-${n}`,
      referenceId: `order-${n}`,
      status: random.pick(["SUCCESS", "FAILED", "PENDING"]),
      timestamp: ordinary ? (TIMES[0] ?? "") : random.pick(TIMES),
    };
    for (const name of ["merchantId", "message", "providerTxId", "userId"]) {
      if (!random.oneIn(4)) fields[name] = `${name}-${n}`;
    }
    if (!ordinary) {
      const name = random.pick(FREE);
      fields[name] = (fields[name] ?? "x") + random.pick(HOSTILE);
    }
    return {
      flow: "payments",
      fields,
      signature: signCanonicalString(canonicalString(fields), KEYS.privateKey),
      ordinary,
    };
  });
}

/** So many webhooks, all of them as documented. */
export function makeWebhooks(count: number, random: Random): Webhook[] {
  return Array.from({ length: count }, (_, n) => {
    const settlement = random.oneIn(2);
    const decision = random.pick(["approved", "declined"]);
    const data = settlement
      ? {
          object: "settlement",
          id: `wd_${n}`,
          connected_account_id: "cm_1",
          amount: 125000,
          status: decision,
        }
      : { object: "connected_account", id: `cm_${n}`, master_merchant_id: "mm_1", kyc_status: decision };
    const event = `${data.object}.${decision}`;
    return {
      flow: "connect",
      event: { event, idempotency_key: `evt_${n}`, occurred_at: "2026-01-15T11:59:58Z", data },
    };
  });
}

/** The header of a webhook's body. */
export function webhookSignature(body: Uint8Array): string {
  return `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
}
