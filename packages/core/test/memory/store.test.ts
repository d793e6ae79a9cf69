import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { EventFilter } from "../../src/inbox/contract/event-query.ts";
import type { SwapResult } from "../../src/inbox/contract/store.ts";
import { canaryKey, endCanary, newCanary } from "../../src/inbox/record/canary.ts";
import type { IdempotencyRecord } from "../../src/inbox/record/record.ts";
import { type MemoryStore, type MemoryStoreOptions, memoryStore } from "../../src/memory/store.ts";
import {
  acceptedRecord,
  begunRecord,
  DAY_MS,
  decidedRecord,
  endedRecord,
  HOUR_MS,
  keyOf,
  referenceRecord,
} from "../../src/testing/store/records.ts";
import { expectSame, type PutRecord, readOne, swapOf } from "../../src/testing/store/writes.ts";
import { environmentOf } from "../../src/time/environment.ts";

/** A store, its clock, and writes that are given as records only. */
function setUp(options: MemoryStoreOptions = {}) {
  let now = Date.UTC(2026, 0, 1);
  const { clock, ...bounds } = options;
  const store = memoryStore({ clock: { ...environmentOf(clock), now: () => now }, ...bounds });
  const known = new Map<string, PutRecord>();
  return {
    store,
    now: () => now,
    /** Moves the clock; back, where it is less than 0. */
    pass(ms: number) {
      now += ms;
    },
    /** Writes the next version of a record, which is remembered here unless it is to be `unknown`. */
    write(key: string, record: IdempotencyRecord, as: "known" | "unknown" = "known"): SwapResult {
      const swap = swapOf(store, key, known.get(key) ?? null, record);
      const [result] = store.swap([swap]);
      if (result === undefined) throw new Error("no answer");
      if (result.kind === "written" && as === "known") known.set(key, swap);
      return result;
    },
    written(key: string): PutRecord {
      const written = known.get(key);
      if (written === undefined) throw new Error("never written");
      return written;
    },
  };
}

const WRITTEN = { kind: "written" };
const FULL = { kind: "refused", cause: { code: "ERR_INBOX_FULL", status: 503 } };
/** A look that may take so many of each lane. The records left in both are counted together. */
function look(store: MemoryStore, limit: number, hideMs: number) {
  const { left, ...found } = store.takeDue({ usual: limit, patient: limit }, hideMs);
  return { ...found, left: left.usual + left.patient };
}
const takenKeys = (store: MemoryStore, limit: number): readonly string[] =>
  look(store, limit, 60_000).records.map(({ key }) => key);

/** Bytes by which the heap has grown, after a full collection. */
function grownBy(action: () => void): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const before = getHeapStatistics().used_heap_size;
  action();
  collect();
  return getHeapStatistics().used_heap_size - before;
}

describe("the memory store", () => {
  it("has its answers at once", () => {
    const { store } = setUp();
    const key = keyOf(1);
    const answers = [
      store.read([key]),
      store.swap([swapOf(store, key, null, acceptedRecord(key, store.now(key)))]),
      look(store, 1, 1_000),
      store.counts(),
    ];
    expect(answers).toEqual([
      [null],
      [WRITTEN],
      expect.objectContaining({ left: 0 }),
      expect.objectContaining({ waiting: 1 }),
    ]);
    expect([store.immediate, store.endsWithProcess, store.durability]).toEqual([true, true, "process"]);
  });

  it("takes randomness when it is opened, not when it is made: Workers refuse it while modules are loaded", async () => {
    let tokens = 0;
    const store = memoryStore({
      clock: { ...environmentOf(), token: () => `token-${++tokens}-of-twelve` },
    });
    expect(tokens).toBe(0);
    await store.open();
    await store.open();
    expect([store.datasetId, tokens]).toEqual(["token-1-of-twelve", 1]);
  });

  it("gives out records that became due at the same time in the order of their writes", () => {
    const { store, write, now } = setUp();
    const keys = Array.from({ length: 100 }, (_, n) => keyOf(n));
    for (const key of keys) write(key, acceptedRecord(key, now()));
    const taken: string[] = [];
    while (taken.length < keys.length) taken.push(...takenKeys(store, 7));
    expect(taken).toEqual(keys);
  });

  it("counts exactly the due records that are left", () => {
    const { store, write, now } = setUp();
    for (let n = 0; n < 20; n++) write(keyOf(n), acceptedRecord(keyOf(n), now()));
    expect(look(store, 0, 60_000).left).toBe(20);
    expect(look(store, 6, 60_000).left).toBe(14);
    expect(look(store, 100, 60_000).left).toBe(0);
  });

  it("keeps one time for a record, however often that is written", () => {
    const { store, write, now, pass } = setUp();
    const key = keyOf(1);
    const waiting = acceptedRecord(key, now());
    write(key, waiting);
    for (let n = 0; n < 1_000; n++) {
      pass(1);
      write(key, begunRecord(key, now(), waiting, 30_000 + (n % 7) * 1_000));
    }
    expect(look(store, 10, 1_000)).toMatchObject({ records: [], left: 0 });
    pass(60_000);
    const { records, left, nextDueAt } = look(store, 10, 1_000);
    expect([records.map((one) => one.key), left, nextDueAt]).toEqual([[key], 0, now() + 1_000]);
  });

  it("does not wait for times that are far away only because the clock was set back", () => {
    const { store, write, now, pass } = setUp();
    const [retried, late, held] = [keyOf(1), keyOf(2), keyOf(3)];
    write(retried, acceptedRecord(retried, now(), { delayMs: 10_000 }));
    write(held, acceptedRecord(held, now()));
    expect(takenKeys(store, 10)).toEqual([held]);
    pass(-HOUR_MS);
    write(late, acceptedRecord(late, now(), { delayMs: 2 * HOUR_MS }));
    expect(store.counts().oldestDueAt).toBe(now());
    expect(takenKeys(store, 10)).toEqual([retried, held]);
    expect(look(store, 10, 1_000)).toMatchObject({ records: [], left: 0 });
  });

  it("sees that the clock was set back where nobody has looked before", () => {
    const { store, write, now, pass } = setUp();
    write(keyOf(1), acceptedRecord(keyOf(1), now(), { delayMs: 10_000 }));
    pass(-HOUR_MS);
    write(keyOf(2), acceptedRecord(keyOf(2), now(), { delayMs: 10_000 }));
    expect(takenKeys(store, 10)).toEqual([keyOf(1)]);
  });

  it("waits for a time again that was too far away until the clock was set right", () => {
    const { store, write, now, pass } = setUp();
    const dueAt = now() + 10_000;
    write(keyOf(1), acceptedRecord(keyOf(1), now(), { delayMs: 10_000 }));
    pass(-HOUR_MS);
    expect(look(store, 0, 1_000).left).toBe(1);
    pass(HOUR_MS);
    expect(look(store, 10, 1_000)).toEqual({ records: [], left: 0, nextDueAt: dueAt });
    pass(10_000);
    expect(takenKeys(store, 10)).toEqual([keyOf(1)]);
  });

  it("takes a clock that goes back a little for right", () => {
    const { store, write, now, pass } = setUp();
    write(keyOf(1), acceptedRecord(keyOf(1), now(), { delayMs: 10_000 }));
    write(keyOf(2), acceptedRecord(keyOf(2), now()));
    expect(takenKeys(store, 10)).toEqual([keyOf(2)]);
    pass(-2_000);
    expect(look(store, 10, 1_000)).toMatchObject({ records: [], left: 0 });
  });

  it("puts a record back as it was, with its indexes", () => {
    const { store, write, written, now } = setUp();
    const key = keyOf(1);
    const waiting = acceptedRecord(key, now());
    write(key, waiting);
    const before = written(key);
    write(key, endedRecord(key, now(), waiting));
    expect(store.counts()).toMatchObject({ waiting: 0 });
    store.restore(key, before);
    expect(store.counts()).toMatchObject({ waiting: 1 });
    expect(takenKeys(store, 10)).toEqual([key]);
    store.restore(key, { ...before, record: endedRecord(key, now(), waiting) });
    expect(store.counts()).toMatchObject({ waiting: 0, running: 0, oldestDueAt: null });
    expect(look(store, 10, 1_000)).toEqual({ records: [], left: 0, nextDueAt: null });
  });

  it("has a record that gets new work in one place only", async () => {
    const { store, write, now } = setUp();
    const key = keyOf(1);
    const done = endedRecord(key, now(), acceptedRecord(key, now(), { status: "PENDING" }));
    write(key, done);
    write(key, acceptedRecord(key, now(), { status: "SUCCESS" }, done));
    const slots = async (filter: EventFilter) => {
      const { events, next } = await store.list(filter, null, 1);
      expect(next).toBeNull();
      return events.map(({ eventId }) => done.slots[eventId.slice(32)]?.status ?? "new");
    };
    expect(await slots({})).toEqual(["new"]);
    expect(await slots({ state: "finished" })).toEqual(["PENDING"]);
    expect(store.forgottenBefore("")).toBe(Number.NEGATIVE_INFINITY);
  });

  it("lists many finished records in several turns of the event loop, while they come and go", async () => {
    let turns = 0;
    const system = environmentOf();
    const nextTurn = (callback: () => void): void => {
      turns++;
      system.nextTurn(callback);
    };
    const { store, write, now } = setUp({ maxRecords: 2_000, clock: { ...system, nextTurn } });
    const finish = (n: number): void => {
      write(keyOf(n), endedRecord(keyOf(n), now(), acceptedRecord(keyOf(n), now(), { id: `tx-${n}` })));
    };
    for (let n = 0; n < 2_000; n++) finish(n);
    const listing = store.list({ state: "finished" }, null, 5_000);
    for (let n = 2_000; n < 3_000; n++) finish(n);
    const { events, next } = await listing;
    expect(turns).toBeGreaterThanOrEqual(3);
    expect(next).toBeNull();
    const ids = new Set(events.map(({ eventId }) => eventId.slice(0, 32)));
    // A record that stayed all the time is there, once.
    for (let n = 1_000; n < 2_000; n++) expect(ids.has(keyOf(n))).toBe(true);
    expect(ids.size).toBe(events.length);
    expect((await store.list({ state: "finished", id: "tx-2500" }, null, 10)).events).toHaveLength(1);
  });
});

describe("the memory store at its bounds", () => {
  it("lets the finished records go that were not asked for for longest, and says which it may have known", async () => {
    const { store, write, written, now, pass } = setUp({ maxRecords: 5 });
    const signedAt: number[] = [];
    const done = (n: number): IdempotencyRecord => {
      pass(1_000);
      signedAt[n] = now();
      return endedRecord(keyOf(n), now(), acceptedRecord(keyOf(n), now()));
    };
    for (let n = 0; n < 5; n++) write(keyOf(n), done(n));
    expect(store.forgottenBefore("")).toBe(Number.NEGATIVE_INFINITY);
    expectSame(await readOne(store, keyOf(0)), written(keyOf(0)));
    for (let n = 5; n < 8; n++) write(keyOf(n), done(n));
    const found = store.read([0, 1, 2, 3, 4, 5, 6, 7].map(keyOf)).map((one) => one !== null);
    expect(found).toEqual([true, false, false, false, true, true, true, true]);
    expect(store.forgottenBefore("")).toBe(signedAt[3]);
    // The first is now the one that was asked for longest ago; to be listed is not to be asked for.
    expect((await store.list({ state: "finished" }, null, 10)).events).toHaveLength(5);
    write(keyOf(8), done(8));
    expect(store.read([keyOf(0)])).toEqual([null]);
    expect(store.forgottenBefore("")).toBe(signedAt[3]);
  });

  it("makes room among the records of the tenant that has most, and forgets nothing of another", () => {
    const { store, write, now, pass } = setUp({ maxRecords: 10 });
    const done = (n: number, tenant: string): number => {
      pass(1_000);
      write(keyOf(n), endedRecord(keyOf(n), now(), acceptedRecord(keyOf(n), now(), { tenant })));
      return now();
    };
    const has = (from: number, to: number) =>
      store.read(Array.from({ length: to - from }, (_, n) => keyOf(from + n))).map((one) => one !== null);
    for (let n = 0; n < 3; n++) done(n, "small");
    const flood = Array.from({ length: 20 }, (_, n) => done(100 + n, "flood"));
    expect(has(0, 3)).toEqual([true, true, true]);
    expect(has(112, 120)).toEqual([false, ...Array<boolean>(7).fill(true)]);
    expect(store.forgottenBefore("small")).toBe(Number.NEGATIVE_INFINITY);
    expect(store.forgottenBefore("flood")).toBe(flood[12]);
    // The others take room from it until all have as many.
    for (let n = 3; n < 5; n++) done(n, "small");
    expect(has(0, 5)).toEqual([true, true, true, true, true]);
    expect(store.forgottenBefore("flood")).toBe(flood[14]);
    done(200, "");
    expect(store.read([keyOf(200)])).not.toEqual([null]);
    expect(store.forgottenBefore("")).toBe(Number.NEGATIVE_INFINITY);
  });

  it("still knows what a tenant forgot when none of its records is left", () => {
    const { store, write, now, pass } = setUp({ maxRecords: 1 });
    const done = (n: number, tenant: string): number => {
      pass(1_000);
      write(keyOf(n), endedRecord(keyOf(n), now(), acceptedRecord(keyOf(n), now(), { tenant })));
      return now();
    };
    const forgotten = done(1, "a");
    done(2, "b");
    expect(store.read([keyOf(1)])).toEqual([null]);
    expect(store.forgottenBefore("a")).toBe(forgotten);
    expect(store.forgottenBefore("b")).toBe(Number.NEGATIVE_INFINITY);
  });

  it("leaves room for others ahead of their time, where one tenant's clock is wrong", () => {
    const { store, write, now, pass } = setUp({ maxRecords: 4 });
    const ahead = (n: number, tenant: string, byMs = HOUR_MS) =>
      write(
        keyOf(n),
        endedRecord(keyOf(n), now() + byMs, acceptedRecord(keyOf(n), now() + byMs, { tenant })),
      );
    for (const n of [1, 2]) expect(ahead(n, "flood")).toEqual(WRITTEN);
    expect(ahead(3, "flood")).toMatchObject(FULL);
    expect(ahead(4, "other")).toEqual(WRITTEN);
    expect(ahead(5, "other")).toMatchObject(FULL);
    expect(ahead(6, "")).toEqual(WRITTEN);
    pass(2 * HOUR_MS);
    for (const n of [7, 8, 9]) ahead(n, "flood", 0);
    expect(ahead(3, "flood")).toEqual(WRITTEN);
    expect(store.forgottenBefore("other")).toBe(Number.NEGATIVE_INFINITY);
  });

  it("keeps a finished record in some 500 bytes", () => {
    const { store, write, now } = setUp();
    const records = 20_000;
    const bytes = grownBy(() => {
      for (let n = 0; n < records; n++) {
        const id = `0b6f6e0c-6b0e-4f0e-9d7e-${String(n).padStart(12, "0")}`;
        const sample = { id, referenceId: `order-${n}` };
        write(keyOf(n), endedRecord(keyOf(n), now(), acceptedRecord(keyOf(n), now(), sample)), "unknown");
      }
    });
    expect(bytes / records).toBeLessThan(530);
    expect(store.read([keyOf(records - 1)])).not.toEqual([null]);
  });

  it("keeps events that wait, run or are held, and every reference", () => {
    const { store, write, now } = setUp({ maxRecords: 3 });
    const [waiting, running, held, reference] = [keyOf(1), keyOf(2), keyOf(3), keyOf(4)];
    write(waiting, acceptedRecord(waiting, now()));
    write(running, begunRecord(running, now(), acceptedRecord(running, now()), HOUR_MS));
    write(held, acceptedRecord(held, now(), { held: "malformed" }));
    write(reference, referenceRecord(waiting, now(), DAY_MS));
    for (let n = 10; n < 50; n++)
      write(keyOf(n), endedRecord(keyOf(n), now(), acceptedRecord(keyOf(n), now())));
    expect(store.read([waiting, running, held, reference]).every((one) => one !== null)).toBe(true);
    expect(store.counts()).toMatchObject({ waiting: 1, running: 1, held: 1 });
  });

  it("refuses a write after which more would wait or run than maxUnfinished, and no other", async () => {
    const { store, write, now } = setUp({ maxUnfinished: 2 });
    const [a, b, c, held] = [keyOf(1), keyOf(2), keyOf(3), keyOf(4)];
    const sample = { status: "PENDING" };
    write(held, acceptedRecord(held, now(), { held: "malformed" }));
    write(a, acceptedRecord(a, now(), sample));
    write(b, acceptedRecord(b, now()));
    expect(write(c, acceptedRecord(c, now()))).toMatchObject(FULL);
    expect(store.read([c])).toEqual([null]);
    // A replay, and a second event of a transaction that runs, would be one more each.
    const runs = begunRecord(a, now(), acceptedRecord(a, now(), sample), HOUR_MS);
    expect(
      write(held, decidedRecord(held, now(), acceptedRecord(held, now(), { held: "malformed" }), "replay")),
    ).toMatchObject(FULL);
    expect(write(a, acceptedRecord(a, now(), { status: "SUCCESS" }, runs))).toMatchObject(FULL);
    expect(write(a, runs)).toEqual(WRITTEN);
    // A terminal status takes the place of the PENDING that it makes stale.
    expect(
      write(a, acceptedRecord(a, now(), { status: "SUCCESS" }, acceptedRecord(a, now(), sample))),
    ).toEqual(WRITTEN);
    expect(write(keyOf(5), acceptedRecord(keyOf(5), now(), { held: "malformed" }))).toEqual(WRITTEN);
    expect(write(canaryKey("first"), newCanary(now(), true))).toMatchObject(FULL);
    expect(write(b, endedRecord(b, now(), acceptedRecord(b, now())))).toEqual(WRITTEN);
    expect(write(canaryKey("second"), newCanary(now(), true))).toEqual(WRITTEN);
    expect(write(canaryKey("second"), endCanary(newCanary(now(), true), now()))).toEqual(WRITTEN);
    expect(write(c, acceptedRecord(c, now()))).toEqual(WRITTEN);
    expect(store.counts()).toMatchObject({ waiting: 2, held: 2 });
  });

  it("leaves room for the references of others", () => {
    const { store, write, now, pass } = setUp({ maxRecords: 4 });
    const claim = (n: number, tenant: string) =>
      write(keyOf(n), { ...referenceRecord(keyOf(9), now(), HOUR_MS), tenant });
    for (const n of [1, 2]) expect(claim(n, "flood")).toEqual(WRITTEN);
    expect(claim(3, "flood")).toMatchObject(FULL);
    expect(claim(2, "flood")).toEqual(WRITTEN);
    expect(claim(4, "other")).toEqual(WRITTEN);
    expect(claim(5, "other")).toMatchObject(FULL);
    expect(claim(6, "")).toEqual(WRITTEN);
    expect(store.read([1, 2, 4, 6].map(keyOf)).every((one) => one !== null)).toBe(true);
    pass(HOUR_MS + 60_000);
    for (const n of [3, 7]) expect(claim(n, "flood")).toEqual(WRITTEN);
    expect(claim(8, "flood")).toMatchObject(FULL);
  });

  it("forgets a tenant that has no reference any more", () => {
    const { write, now, pass } = setUp({ maxRecords: 2 });
    const tenants = 20_000;
    const bytes = grownBy(() => {
      for (let n = 0; n < tenants; n++) {
        expect(
          write(keyOf(n), { ...referenceRecord(keyOf(n), now(), 1), tenant: `tenant-${n}` }, "unknown"),
        ).toEqual(WRITTEN);
        pass(60_000);
      }
    });
    expect(bytes / tenants).toBeLessThan(20);
  });

  it("refuses a reference where it has no room for it, until one is free again", () => {
    const { store, write, now, pass } = setUp({ maxRecords: 2 });
    const [first, second, third] = [keyOf(1), keyOf(2), keyOf(3)];
    const event = keyOf(9);
    write(first, referenceRecord(event, now(), HOUR_MS));
    write(second, referenceRecord(event, now(), HOUR_MS));
    expect(write(third, referenceRecord(event, now(), HOUR_MS))).toMatchObject(FULL);
    expect(store.read([third])).toEqual([null]);
    expect(write(event, acceptedRecord(event, now()))).toEqual(WRITTEN);
    pass(HOUR_MS / 2);
    expect(write(second, referenceRecord(event, now(), HOUR_MS))).toEqual(WRITTEN);
    pass(HOUR_MS / 2 + 1);
    expect(write(third, referenceRecord(event, now(), HOUR_MS))).toEqual(WRITTEN);
    expect(store.read([first, second, third]).map((one) => one !== null)).toEqual([false, true, true]);
    expect(write(keyOf(4), referenceRecord(event, now(), HOUR_MS))).toMatchObject(FULL);
  });
});
