import { randomUUID } from "node:crypto";
import type { ConnectEvent } from "../events.ts";
import { asDelivery, type CallbackFields, type SignedDelivery, signPaymentCallback } from "./signers.ts";

/** Fields of a genuine callback, a SUCCESS deposit of 10.50 unless told otherwise. Ids are new each time. */
export function callbackFields(overrides: CallbackFields = {}, now: number = Date.now()): CallbackFields {
  return {
    event: "DEPOSIT",
    referenceId: `order-${randomUUID()}`,
    payTxnId: randomUUID(),
    status: "SUCCESS",
    amount: "10.500000",
    callbackUrl: "https://merchant.example/callbacks/pay",
    message: "Payment completed",
    providerTxId: "MP-7261",
    timestamp: `${new Date(now).toISOString().slice(0, -1)}123456Z`,
    merchantId: "0b6f6e0c-6b0e-4f0e-9d7e-3f2f6a1c0001",
    userId: "user-17",
    ...overrides,
  };
}

/** A genuine connected-account event. Ids are new each time. */
export function connectEvent(
  event: ConnectEvent["event"] | (string & {}) = "settlement.approved",
  overrides: Readonly<Record<string, unknown>> = {},
  now: number = Date.now(),
): Readonly<Record<string, unknown>> {
  const decision = event.split(".")[1] ?? "approved";
  const data = event.startsWith("settlement.")
    ? {
        object: "settlement",
        id: `wd_${randomUUID()}`,
        connected_account_id: `cm_${randomUUID()}`,
        amount: 125000,
        status: decision,
      }
    : {
        object: "connected_account",
        id: `cm_${randomUUID()}`,
        master_merchant_id: `mm_${randomUUID()}`,
        kyc_status: decision,
      };
  return {
    event,
    idempotency_key: `evt_${randomUUID()}`,
    occurred_at: new Date(now).toISOString(),
    data,
    ...overrides,
  };
}

/** A genuine callback with one field changed after it was signed. */
export function forgedCallback(
  fields: CallbackFields,
  changed: CallbackFields,
  privateKey: string,
): SignedDelivery {
  const { rawBody } = signPaymentCallback(fields, privateKey);
  return asDelivery({ ...(JSON.parse(Buffer.from(rawBody).toString("utf8")) as object), ...changed });
}

/** Two bodies with one signature: what the service sent, and what an attacker makes of it. */
export interface ResplitPair {
  readonly genuine: SignedDelivery;
  readonly forged: SignedDelivery;
}

/**
 * The forgery of the canonical string (docs/security.md): a FAILED deposit whose reference was chosen by a customer
 * carries a signature that also fits a SUCCESS for `victim`.
 */
export function resplitPair(victim: string, privateKey: string, overrides: CallbackFields = {}): ResplitPair {
  const fields = callbackFields({ status: "FAILED", message: "Declined", ...overrides });
  const timestamp = String(fields.timestamp);
  const tail = `&status=SUCCESS&timestamp=${timestamp}&userId=u`;
  const genuineFields = { ...fields, referenceId: `${victim}${tail}` };
  const genuine = signPaymentCallback(genuineFields, privateKey);
  const { signature } = JSON.parse(Buffer.from(genuine.rawBody).toString("utf8")) as { signature: string };
  const swallowed = `u&status=FAILED&timestamp=${timestamp}&userId=${String(fields.userId)}`;
  const forged = asDelivery({
    ...fields,
    referenceId: victim,
    status: "SUCCESS",
    timestamp,
    userId: swallowed,
    signature,
  });
  return { genuine, forged };
}

/** The same items in another order, the same for the same seed. */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const list = [...items];
  let state = seed >>> 0;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j] as T, list[i] as T];
  }
  return list;
}
