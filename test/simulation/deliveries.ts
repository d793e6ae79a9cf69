import { createPublicKey, createSecretKey, type KeyObject } from "node:crypto";
import {
  callbackFields,
  createTestKeys,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { connectFlow } from "../../packages/core/src/flows/connect.ts";
import { paymentsFlow } from "../../packages/core/src/flows/payments.ts";
import type { VerifiedEvent } from "../../packages/core/src/inbox/record/event.ts";
import type { Delivery } from "../../packages/core/src/protocol/delivery.ts";
import { systemClock } from "../../packages/core/src/time/clock.ts";
import type { PlannedEvent } from "./plan.ts";

/** The right time at which every history begins. */
export const EPOCH: number = Date.UTC(2026, 0, 1);

/** The merchant's keys: one pair for all histories, since to sign takes long. */
const keys: { readonly publicKey: string; readonly privateKey: string; readonly secret: string } = {
  ...createTestKeys(),
  secret: "a-long-secret-of-the-simulated-merchant",
};

/** The same, imported once. */
export const keyObjects: { readonly publicKey: KeyObject; readonly secret: KeyObject } = {
  publicKey: exportedOnce(createPublicKey(keys.publicKey)),
  secret: createSecretKey(keys.secret, "utf8"),
};

/** Each process exports the key as it starts, which takes longer than all else that it does then. */
function exportedOnce(key: KeyObject): KeyObject {
  const exported = new Map<string, ReturnType<KeyObject["export"]>>();
  const exportNow = key.export.bind(key) as (options: object) => ReturnType<KeyObject["export"]>;
  const exportOnce = (options: object): ReturnType<KeyObject["export"]> => {
    const format = JSON.stringify(options);
    const found = exported.get(format) ?? exportNow(options);
    exported.set(format, found);
    return found;
  };
  return Object.assign(key, { export: exportOnce });
}

/** A delivery as it is sent, and its fields. */
export interface SimulatedDelivery {
  readonly delivery: Delivery;
  readonly verified: VerifiedEvent;
  /** The eventId, and the eventId that it has if it contradicts the record. */
  readonly eventId: string;
  readonly variantId: string;
}

const context = {
  windowMs: 7 * 86_400_000,
  acceptTimeoutMs: 2_000,
  maxResolving: 1,
  clock: systemClock,
};
const payments = paymentsFlow({ publicKey: keys.publicKey }, context);
const connect = connectFlow({ secret: keys.secret }, context);
await payments.prepare();
await connect.prepare();

const made = new Map<string, SimulatedDelivery>();

/** The signed delivery of an event: the same for each copy, and for the same event of another history. */
export function deliveryOf(event: PlannedEvent): SimulatedDelivery {
  const { flow, name, id, status, variant, reference, signedAt, account = null } = event;
  const label = `${flow} ${name} ${id} ${status} ${variant} ${reference} ${signedAt} ${account}`;
  let found = made.get(label);
  if (found === undefined) {
    found = make(event, flow === "payments" ? callbackOf(event) : webhookOf(event));
    made.set(label, found);
  }
  return found;
}

function make({ flow, signedAt }: PlannedEvent, { rawBody, headers }: SignedDelivery): SimulatedDelivery {
  const delivery: Delivery = { method: "POST", url: `/${flow}`, rawBody, headers: new Headers(headers) };
  const verification = (flow === "payments" ? payments : connect).verify(delivery, EPOCH + signedAt);
  if ("then" in verification || !verification.ok) throw new Error("the simulated service signs wrongly");
  const { verified } = verification.reading;
  const { key, slot } = verified;
  return { delivery, verified, eventId: key + slot, variantId: key + verified.variantSlot() };
}

function callbackOf({ name, id, status, variant, reference, signedAt }: PlannedEvent): SignedDelivery {
  const fields = callbackFields(
    {
      event: name as "DEPOSIT",
      payTxnId: `00000000-0000-4000-8000-${String(id).padStart(12, "0")}`,
      referenceId: `order-${reference}`,
      status: status as "SUCCESS",
      amount: variant === 0 ? "10.500000" : "99.000000",
    },
    EPOCH + signedAt,
  );
  return signPaymentCallback(fields, keys.privateKey);
}

function webhookOf({ name, id, variant, signedAt, account = null }: PlannedEvent): SignedDelivery {
  const decision = name.split(".")[1];
  const number = account === null ? `${id}-${variant}` : `shared-${account}`;
  const data = name.startsWith("settlement.")
    ? {
        object: "settlement",
        id: `wd_${number}`,
        connected_account_id: "cm_1",
        amount: 5000,
        status: decision,
      }
    : { object: "connected_account", id: `cm_${number}`, master_merchant_id: "mm_1", kyc_status: decision };
  const envelope = {
    event: name,
    idempotency_key: `evt_${id}`,
    occurred_at: new Date(EPOCH + signedAt).toISOString(),
    data,
  };
  return signConnectWebhook(envelope, keys.secret);
}
