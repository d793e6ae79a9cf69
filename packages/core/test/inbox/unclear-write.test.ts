import { createReceiver, type Notice } from "@payhooks/core";
import { createInbox, memoryStore, type RecordStore, type SwapResult } from "@payhooks/core/inbox";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { settle } from "../../src/testing/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { deliveryOf } from "../receiving.ts";

const keys = createTestKeys();

it("runs an event whose first write went unanswered, even if the store refuses the repeated writes", async () => {
  const clock = fakeClock();
  const environment = environmentOf(clock);
  const store = memoryStore({ clock: environment });
  let writes: "written" | "unheard" | "refused" = "unheard";
  const cause = new Error("the connection broke");
  const breaking: RecordStore = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== "swap" || writes === "written") return value.bind(target);
      return (items: readonly unknown[]): readonly SwapResult[] => {
        if (writes === "unheard") value.call(target, items);
        const kind = writes === "unheard" ? "unknown" : "not-written";
        writes = "refused";
        return items.map(() => ({ kind, cause }));
      };
    },
  });
  const runs: string[] = [];
  const notices: Notice[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: createInbox(breaking, { clock: environment }),
    clock,
    logger: silent,
  });
  receiver.onDeposit(({ payTxnId }) => void runs.push(payTxnId)).observe((notice) => notices.push(notice));
  await receiver.start();
  const fields = callbackFields({ payTxnId: "one" }, clock.now());
  const answering = receiver.payments.receive(deliveryOf(signPaymentCallback(fields, keys.privateKey)));
  const passes = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 100) {
      await settle();
      await clock.advance(100);
    }
  };
  await passes(3_000);
  expect((await answering).status).toBe(503);
  expect(runs).toEqual([]);
  writes = "written";
  await passes(1_000);
  expect(runs).toEqual(["one"]);
  await passes(60_000);
  expect(runs).toEqual(["one"]);
  expect(notices.filter(({ type }) => type === "double-risk")).toEqual([]);
  await receiver.close({ graceMs: 0 });
});
