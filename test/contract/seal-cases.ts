/** Dumps the database of each sealed inbox, and searches it for every field of its callbacks. */
import { randomBytes } from "node:crypto";
import { createReceiver, type Inbox, type Notice, type Receiver } from "@payhooks/core";
import { aesGcm, type SealKey } from "@payhooks/core/seal";
import {
  anyCallbackFields,
  type CallbackFields,
  createTestKeys,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { until, withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import type { DumpedInboxes } from "./dumped-inboxes.ts";

const keys = createTestKeys();
const keyOf = (id: string): SealKey => ({ id, key: randomBytes(32) });

function receiverOn(inbox: Inbox): Receiver {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey, keep: { signedTextMs: 86_400_000 }, oneSuccessPerReference: true },
    inbox,
    run: "elsewhere",
    logger: silent,
  });
  receiver.onDeposit(
    ({ referenceId }) => {
      if (referenceId.endsWith(".refused")) throw new Error("the bank of Amina refuses");
    },
    { maxAttempts: 1 },
  );
  return receiver;
}

const payment = (end: string, now: number): CallbackFields =>
  anyCallbackFields(
    {
      payTxnId: `txn-of-amina${end}`,
      referenceId: `order-of-amina${end}`,
      message: `shoes for Amina${end}`,
      amount: "48151.62",
    },
    now,
  );

async function deliver({ payments }: Receiver, fields: CallbackFields): Promise<number> {
  const { headers, rawBody } = signPaymentCallback(fields, keys.privateKey);
  const { status } = await payments.receive({
    method: "POST",
    url: "/callbacks",
    headers: { get: (name) => headers[name] ?? null },
    rawBody,
  });
  return status;
}

/** The values of a callback that are in a dump, and what an error of a handler had in it. */
function foundIn(dump: string, fields: CallbackFields): readonly string[] {
  const { rawBody } = signPaymentCallback(fields, keys.privateKey);
  const { event, ...values } = JSON.parse(rawBody.toString()) as Record<string, string>;
  // The name of the event is part of a handler's name, which every start notes.
  const texts = [...Object.values(values).map(String), `event=${event}`, "the bank of Amina", "Amina"];
  return texts.filter((text) => text.length > 3 && dump.includes(text));
}

/** The cases, for each of these databases. */
export function sealCases(kinds: DumpedInboxes): void {
  describe("no field of a callback is in", { timeout: 120_000 }, () => {
    it.each(Object.entries(kinds))("%s", (_, make) =>
      withScope(async (scope) => {
        const { open, dump } = await make(scope);
        const seal = aesGcm([keyOf("k-dump")]);
        const receiver = scope.add(receiverOn(open(seal)), (one) => one.close({ graceMs: 0 }));
        const now = Date.now();
        const payments = ["", ".refused", ".waiting"].map((end) => payment(end, now));
        for (const fields of payments.slice(0, 2)) expect(await deliver(receiver, fields)).toBe(200);
        expect(await receiver.work()).toMatchObject({ ran: 2, failed: 1 });
        for (const fields of payments.slice(2)) expect(await deliver(receiver, fields)).toBe(200);

        const dumped = await dump();
        expect(payments.flatMap((fields) => foundIn(dumped, fields))).toEqual([]);
        expect(dumped).toContain("Sk-dump:");

        // Everything is found, and copies are recognised: here and in another process.
        const other = scope.add(receiverOn(open(seal)), (one) => one.close({ graceMs: 0 }));
        for (const one of [receiver, other]) {
          const found = await one.events.list({ id: "txn-of-amina.refused" });
          expect(found.events).toMatchObject([{ state: "held", referenceId: "order-of-amina.refused" }]);
          expect(JSON.stringify(found.events)).toContain("the bank of Amina refuses");
          for (const fields of payments) expect(await deliver(one, fields)).toBe(200);
        }
        expect(await other.work()).toMatchObject({ ran: 1 });
        for (const fields of payments) expect(await deliver(other, fields)).toBe(200);
        expect(await receiver.work()).toMatchObject({ ran: 0, remaining: 0 });
      }),
    );
  });

  describe("a record whose key one process does not have", { timeout: 120_000 }, () => {
    it.each(Object.entries(kinds))(
      "waits, a notice names the key, and it runs once the key is there: %s",
      (_, make) =>
        withScope(async (scope) => {
          const { open } = await make(scope);
          const [old, next] = [keyOf("k-old"), keyOf("k-next")];
          // A deploy in the wrong order: one process seals with a key that the other one does not know.
          const ahead = scope.add(receiverOn(open(aesGcm([next, old]))), (one) => one.close({ graceMs: 0 }));
          const behind = scope.add(receiverOn(open(aesGcm([old]))), (one) => one.close({ graceMs: 0 }));
          const notices: Notice[] = [];
          behind.observe((notice) => void notices.push(notice));
          const now = Date.now();
          expect(await deliver(behind, payment(".first", now))).toBe(200);
          expect(await deliver(ahead, payment("", now))).toBe(200);

          expect(await behind.work()).toMatchObject({ ran: 1, failed: 0 });
          const errors = notices.flatMap((notice) => (notice.type === "inbox-error" ? [notice.error] : []));
          expect(errors.join("\n")).toContain('sealed with the key "k-next"');
          // A copy is not acknowledged where nobody can tell what it is a copy of.
          expect(await deliver(behind, payment("", now))).toBe(503);

          const updated = scope.add(receiverOn(open(aesGcm([old, next]))), (one) =>
            one.close({ graceMs: 0 }),
          );
          // The record that the other process has looked at comes out of hiding.
          let ran = 0;
          await until("the event has run", async () => {
            ran += (await updated.work()).ran;
            return ran === 1;
          });
          expect(await deliver(updated, payment("", now))).toBe(200);
          expect((await updated.events.list({ id: "txn-of-amina" })).events).toMatchObject([
            { state: "done" },
          ]);
          expect((await ahead.events.list({ id: "txn-of-amina.first" })).events).toMatchObject([
            { state: "done" },
          ]);
        }),
    );
  });

  it("a search finds the fields in an inbox without a seal", { timeout: 120_000 }, () =>
    withScope(async (scope) => {
      const [make] = Object.values(kinds);
      if (make === undefined) throw new Error("no database was given");
      const { open, dump } = await make(scope);
      const receiver = scope.add(receiverOn(open()), (one) => one.close({ graceMs: 0 }));
      const fields = payment("", Date.now());
      expect(await deliver(receiver, fields)).toBe(200);
      expect(foundIn(await dump(), fields)).toEqual(
        expect.arrayContaining(["txn-of-amina", "order-of-amina", "shoes for Amina", "48151.62", "SUCCESS"]),
      );
    }),
  );
}
