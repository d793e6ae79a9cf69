import type { PaymentStatus } from "@payhooks/core";
import { callbackFields, type SignedDelivery, signPaymentCallback } from "@payhooks/core/testing";

/**
 * The behaviour of a handler of the processes under test; it stands at the start of the event's `referenceId`. `calm`: sleeps a
 * while and returns. `throws`: throws in its first attempt. `rejects`: is held at once. `poison`: kills its process. `hangs`:
 * never returns. `slow`: takes half a second. `long`: takes 3 s, more than a lease.
 */
export type Manner = "calm" | "throws" | "rejects" | "poison" | "hangs" | "slow" | "long";

/** One event that is sent until it is acknowledged. */
export interface TestEvent {
  /** `payTxnId status`, or the `idempotency_key` of a webhook, by which log, held list and sender know it. */
  readonly key: string;
  readonly path: string;
  readonly payTxnId: string;
  readonly manner: Manner;
  readonly delivery: SignedDelivery;
}

let count = 0;

/** A signed event. Signing takes about a millisecond. */
export function testEvent(
  privateKey: string,
  {
    manner = "calm",
    status = "SUCCESS",
    payTxnId,
    amount,
    message,
    event = "DEPOSIT",
  }: Partial<EventTraits> = {},
): TestEvent {
  const id = payTxnId ?? `txn-${process.pid}-${Date.now().toString(36)}-${++count}`;
  const fields = callbackFields({
    event,
    payTxnId: id,
    status,
    referenceId: `${manner}-${id}`,
    ...(amount === undefined ? {} : { amount }),
    ...(message === undefined ? {} : { message }),
  });
  return {
    key: `${id} ${status}`,
    path: "/callbacks/pay",
    payTxnId: id,
    manner,
    delivery: signPaymentCallback(fields, privateKey),
  };
}

interface EventTraits {
  readonly event: "DEPOSIT" | "WITHDRAWAL";
  readonly manner: Manner;
  readonly status: PaymentStatus;
  readonly payTxnId: string;
  readonly amount: string;
  readonly message: string;
}
