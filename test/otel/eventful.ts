import {
  createReceiver,
  type Instrumentation,
  memoryInbox,
  type PaymentStatus,
  Reject,
} from "@payhooks/core";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { deliveryOf } from "../../packages/core/test/receiving.ts";
import { silent } from "../support/silent.ts";

/** A receiver to which everything happens that is measured. */
export interface Eventful {
  /** Everything once more. */
  round(): Promise<void>;
  close(): Promise<unknown>;
}

export function eventful(instrumentation: Instrumentation): Eventful {
  const { publicKey, privateKey } = createTestKeys();
  const stranger = createTestKeys().privateKey;
  const receiver = createReceiver({
    payments: { publicKey },
    inbox: memoryInbox(),
    logger: silent,
    run: "after-response",
    alerts: { threshold: 1 },
    instrumentation,
  });
  receiver.ignore("WITHDRAWAL").onDeposit(
    ({ referenceId }, { signal }) => {
      if (referenceId.startsWith("turned down")) throw new Reject("no");
      if (referenceId.startsWith("put off")) throw new Error("not now");
      if (!referenceId.startsWith("over time")) return undefined;
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
    { timeoutMs: 20 },
  );
  let rounds = 0;
  async function send(kind: string, status: PaymentStatus = "SUCCESS", key = privateKey): Promise<void> {
    const name = `${kind} ${rounds}`;
    const work: Promise<unknown>[] = [];
    const sent = signPaymentCallback(callbackFields({ payTxnId: name, referenceId: name, status }), key);
    await receiver.payments.receive(
      { ...deliveryOf(sent), waitUntil: (one) => work.push(one) },
      { mounted: true },
    );
    await Promise.all(work);
  }
  return {
    async round() {
      rounds++;
      await send("plain");
      await send("plain");
      await send("plain", "PENDING");
      await send("turned down");
      await send("put off");
      await send("over time");
      await send("forged", "SUCCESS", stranger);
    },
    close: () => receiver.close(),
  };
}
