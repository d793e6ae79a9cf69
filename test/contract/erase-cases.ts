/** Dumps inboxes once a customer's events are erased, and searches the files for the customer's texts. */
import { createReceiver, type Inbox, type Receiver } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { anyCallbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import type { DumpedInboxes } from "./dumped-inboxes.ts";

/** The customer's texts that the inbox gets to know. */
function textsOf(
  customer: string,
): Readonly<Record<"payTxnId" | "referenceId" | "message" | "error", string>> {
  return {
    payTxnId: `txn-of-${customer}`,
    referenceId: `order-of-${customer}`,
    message: `shoes for ${customer}`,
    error: `the bank refuses ${customer}`,
  };
}

const keys = createTestKeys();
const BY = { by: "the officer", perSecond: Number.POSITIVE_INFINITY };

function receiverOn(inbox: Inbox): Receiver {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey, keep: { signedTextMs: 30 * 86_400_000 } },
    inbox,
    run: "elsewhere",
    logger: silent,
  });
  receiver.onDeposit(
    ({ referenceId }) => {
      if (referenceId.endsWith(".refused"))
        throw new Error(`the bank refuses ${referenceId.split(/[-.]/)[2]}`);
    },
    { maxAttempts: 1 },
  );
  return receiver;
}

/** One payment of a customer that runs, and one that is held. */
function paymentsOf(customer: string, now: number) {
  const { error: _, ...texts } = textsOf(customer);
  return ["", ".refused"].map((end) =>
    signPaymentCallback(
      anyCallbackFields(
        { ...texts, payTxnId: `${texts.payTxnId}${end}`, referenceId: `${texts.referenceId}${end}` },
        now,
      ),
      keys.privateKey,
    ),
  );
}

async function deliver(receiver: Receiver, deliveries: ReturnType<typeof paymentsOf>): Promise<void> {
  for (const { headers, rawBody } of deliveries) {
    const { status } = await receiver.payments.receive({
      method: "POST",
      url: "/callbacks",
      headers: { get: (name) => headers[name] ?? null },
      rawBody,
    });
    expect(status).toBe(200);
  }
}

async function eventIdsOf({ events }: Receiver, customer: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const end of ["", ".refused"]) {
    const { payTxnId } = textsOf(customer);
    for await (const { eventId } of eachEvent(events, { id: `${payTxnId}${end}` })) ids.push(eventId);
  }
  return ids;
}

/** The customer's texts in a dump. */
function foundIn(dump: string, customer: string): readonly string[] {
  return Object.values(textsOf(customer)).filter((text) => dump.includes(text));
}

export function eraseCases(inboxes: DumpedInboxes): void {
  describe("nothing of an erased customer is in", { timeout: 120_000 }, () => {
    it.each(Object.entries(inboxes))("%s", (_, make) =>
      withScope(async (scope) => {
        const { open, dump } = await make(scope);
        const receiver = scope.add(receiverOn(open()), (one) => one.close({ graceMs: 0 }));
        const now = Date.now();
        await deliver(receiver, [...paymentsOf("amina", now), ...paymentsOf("baraka", now)]);
        expect(await receiver.work()).toMatchObject({ ran: 4 });
        for (const customer of ["amina", "baraka"]) {
          expect(foundIn(await dump(), customer)).toEqual(Object.values(textsOf(customer)));
        }

        const ids = await eventIdsOf(receiver, "amina");
        expect(ids).toHaveLength(2);
        expect(await receiver.events.erase(ids, { ...BY, unfinished: true })).toMatchObject({ decided: 2 });
        expect(foundIn(await dump(), "amina")).toEqual([]);

        // Copies are recognised, and bring nothing back.
        await deliver(receiver, paymentsOf("amina", now));
        expect(await receiver.work()).toMatchObject({ ran: 0, remaining: 0 });
        const after = await dump();
        expect(foundIn(after, "amina")).toEqual([]);
        expect(foundIn(after, "baraka")).toEqual(Object.values(textsOf("baraka")));
      }),
    );
  });
}
