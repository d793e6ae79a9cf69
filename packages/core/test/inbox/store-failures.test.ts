import { createReceiver, type Notice } from "@payhooks/core";
import { createInbox, memoryStore } from "@payhooks/core/inbox";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import type { MemoryStore } from "../../src/memory/store.ts";
import { settle } from "../../src/testing/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { deliveryOf } from "../receiving.ts";

const keys = createTestKeys();

/** A receiver whose store can be made to throw in one of its methods, as a driver does that throws texts. */
async function start() {
  const clock = fakeClock();
  const environment = environmentOf(clock);
  const store = memoryStore({ clock: environment });
  let broken: string | null = null;
  const failing = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (name === broken) throw "the text of a driver";
        return value.apply(target, args);
      };
    },
  });
  const notices: Notice[] = [];
  const releases: (() => void)[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: createInbox(failing, { clock: environment }),
    clock,
    concurrency: 1,
    logger: silent,
  });
  receiver
    .onDeposit(() => new Promise<void>((resolve) => releases.push(resolve)))
    .observe((notice) => notices.push(notice));
  await receiver.start();
  const passes = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 100) {
      await settle();
      await clock.advance(100);
    }
    await settle();
  };
  return {
    receiver,
    notices,
    passes,
    /** Null mends it. */
    breakIn: (method: keyof MemoryStore | null) => {
      broken = method;
    },
    release: () => {
      for (const release of releases.splice(0)) release();
    },
    /** The status of the answer, once so much time has passed. */
    async send(payTxnId: string, ms = 0) {
      const fields = callbackFields({ payTxnId, referenceId: `o-${payTxnId}` }, clock.now());
      const answering = receiver.payments.receive(deliveryOf(signPaymentCallback(fields, keys.privateKey)));
      await passes(ms);
      return (await answering).status;
    },
  };
}

describe("a store that throws instead of rejecting", () => {
  it.each(["now", "read", "swap", "takeDue", "forgottenBefore", "counts"] as const)(
    "loses nothing and blocks nothing: %s",
    async (method) => {
      const t = await start();
      expect(await t.send("running")).toBe(200);
      expect(await t.send("waiting")).toBe(200);
      t.breakIn(method);
      t.release();
      const refused = await t.send("refused", 3_000);
      await t.passes(3_000);
      t.breakIn(null);
      await t.passes(10_000);
      t.release();
      // Its place, its record and its line are free again.
      expect(await t.send("refused")).toBe(200);
      await t.passes(10_000);
      t.release();
      await t.passes(1_000);
      const done = t.notices.filter(({ type }) => type === "done").length;
      expect({ refused, done }).toEqual({
        refused: ["now", "swap", "forgottenBefore"].includes(method) ? 503 : 200,
        done: 3,
      });
      expect(t.notices.filter(({ type }) => type === "double-risk")).toEqual([]);
      expect(await t.receiver.close({ graceMs: 0 })).toEqual({ unfinished: 0 });
    },
  );
});
