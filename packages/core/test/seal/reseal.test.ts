/** Sealing anew while a receiver works on the same records. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, type Notice, type Receiver } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it, onTestFinished } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import type { RecordStore } from "../../src/inbox/index.ts";
import { aesGcm, type Seal, type SealKey } from "../../src/seal/index.ts";
import { sqliteInbox, sqliteStore } from "../../src/sqlite/index.ts";
import { deliveryOf } from "../receiving.ts";

const keys = createTestKeys();
const [old, current]: readonly [SealKey, SealKey] = [
  { id: "old", key: randomBytes(32) },
  { id: "new", key: randomBytes(32) },
];

/** A receiver whose handler fails for good, its notices, and the open store below it. It seals with the old key, and knows the new one. */
async function sealedInbox(seal: Seal = aesGcm([old, current])) {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-reseal-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "inbox.db");
  const clock = fakeClock();
  const receiver: Receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(path, { seal, clock }),
    run: "elsewhere",
    logger: silent,
    clock,
  }).ignore("WITHDRAWAL");
  receiver.onDeposit(
    () => {
      throw new Error("refused");
    },
    { maxAttempts: 1 },
  );
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const notices: Notice[] = [];
  receiver.observe((notice) => void notices.push(notice));
  const store = sqliteStore(path, { clock });
  await store.open();
  onTestFinished(() => store.close());
  return {
    clock,
    receiver,
    notices,
    store,
    reseal: (over: RecordStore) => aesGcm([current, old]).reseal(over),
    async deliver(referenceId: string): Promise<void> {
      const fields = callbackFields({ referenceId }, clock.now());
      const delivery = deliveryOf(signPaymentCallback(fields, keys.privateKey));
      expect((await receiver.payments.receive(delivery)).status).toBe(200);
    },
  };
}

/** The same store, which does something between its writes: `before` each one, with its number. */
function meanwhile(store: RecordStore, before: (write: number) => Promise<void> | void): RecordStore {
  let writes = 0;
  return new Proxy(store, {
    get(_, name) {
      if (name === "swap") {
        return async (items: Parameters<RecordStore["swap"]>[0]) => {
          await before(++writes);
          return store.swap(items);
        };
      }
      const value: unknown = Reflect.get(store, name, store);
      return typeof value === "function" ? value.bind(store) : value;
    },
  });
}

it("an event that runs between the two writes of its record is found by everything, and nothing counts as lost", async () => {
  const { clock, receiver, notices, store, reseal, deliver } = await sealedInbox();
  await deliver("order-1");
  const looks: unknown[] = [];
  const look = async (): Promise<void> => {
    await clock.advance(5_000);
    const { held } = await receiver.events.counts();
    looks.push(held, (await receiver.events.list({ state: "held" })).events.length);
  };
  const report = await reseal(
    meanwhile(store, async (write) => {
      if (write !== 2) return;
      expect(await receiver.work()).toMatchObject({ ran: 1, failed: 1 });
      await look();
    }),
  );
  await look();
  const lost = notices.filter(({ type }) => type === "data-lost");
  expect({ looks, lost }).toEqual({ looks: [1, 1, 1, 1], lost: [] });
  expect(report).toMatchObject({ resealed: 1, current: 0 });
  expect((await receiver.events.list({ referenceId: "order-1" })).events).toHaveLength(1);
});

it("an event that runs before the first write of its record is sealed in the same pass", async () => {
  const { receiver, store, reseal, deliver } = await sealedInbox();
  await deliver("order-1");
  let writes = 0;
  const report = await reseal(
    meanwhile(store, async (write) => {
      writes = write;
      if (write === 1) await receiver.work();
    }),
  );
  expect(report).toMatchObject({ resealed: 1, current: 0, complete: true });
  // The first write of the old state, and both of the new one.
  expect(writes).toBe(3);
  expect((await receiver.events.list({ state: "held", referenceId: "order-1" })).events).toHaveLength(1);
});

it("if it is killed between the two writes, the next run of an event brings it back into the lists", async () => {
  const { receiver, store, reseal, deliver } = await sealedInbox();
  await deliver("order-1");
  await deliver("order-2");
  const killed = reseal(
    meanwhile(store, (write) => {
      if (write === 2) throw new Error("killed");
    }),
  );
  await expect(killed).rejects.toThrow("killed");
  const held = async () => {
    const { events } = await receiver.events.list({ state: "held" });
    return { listed: events.length, counted: (await receiver.events.counts()).held };
  };
  expect(await receiver.work({ limit: 1 })).toMatchObject({ ran: 1 });
  expect(await held()).toEqual({ listed: 1, counted: 1 });
  // The next call finds what nobody has written since.
  expect(await reseal(store)).toMatchObject({ resealed: 1, current: 1 });
  expect(await receiver.events.counts()).toMatchObject({ held: 1, waiting: 1 });
  expect(await receiver.work()).toMatchObject({ ran: 1, remaining: 0 });
  expect(await held()).toEqual({ listed: 2, counted: 2 });
  for (const referenceId of ["order-1", "order-2"]) {
    expect((await receiver.events.list({ referenceId })).events).toHaveLength(1);
  }
});

it("resealing ends after its current page when it is aborted", async () => {
  const { store, deliver } = await sealedInbox();
  for (let at = 0; at < 5; at++) await deliver(`order-${at}`);
  const stop = new AbortController();
  const seal = aesGcm([current, old]);
  const { signal } = stop;
  const first = await seal.reseal(store, { perSecond: 2, signal, onProgress: () => stop.abort() });
  expect(first).toMatchObject({ resealed: 2, complete: false });
  expect(await seal.reseal(store)).toMatchObject({ resealed: 3, current: 2, complete: true });
});

it.each(["gone", "__proto__", "constructor"])(
  "resealing counts the records of a key that is missing: %s",
  async (id) => {
    const { store, deliver } = await sealedInbox(aesGcm([{ id, key: randomBytes(32) }]));
    await deliver("order-1");
    const { missing } = await aesGcm([current]).reseal(store);
    expect(Object.entries(missing)).toEqual([[id, 1]]);
  },
);
