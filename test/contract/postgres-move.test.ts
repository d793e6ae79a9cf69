/** Moving from one inbox to another: nothing is lost, nothing is there twice, whatever interrupts it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type IdempotencyRecord, moveRecords, type RecordStore } from "@payhooks/core/inbox";
import { postgresStore } from "@payhooks/core/postgres";
import { redisStore } from "@payhooks/core/redis";
import { sqliteStore } from "@payhooks/core/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryStore } from "../../packages/core/src/memory/store.ts";
import {
  acceptedRecord,
  begunRecord,
  endedRecord,
  eventIds,
  HOUR_MS,
  keyOf,
  referenceRecord,
} from "../../packages/core/src/testing/store/records.ts";
import {
  countsByReason,
  expectSame,
  type PutRecord,
  put,
  putAll,
  readOne,
  takeOfBothLanes,
} from "../../packages/core/src/testing/store/writes.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";

const folder = mkdtempSync(join(tmpdir(), "payhooks-move-"));
const servers = new Scope();
let postgres: PostgresServer;
let redis: RedisServer;
let made = 0;

beforeAll(async () => {
  [postgres, redis] = await Promise.all([PostgresServer.start(servers), RedisServer.start(servers)]);
});
afterAll(async () => {
  await servers.close();
  rmSync(folder, { recursive: true });
});

type Kind = "SQLite" | "PostgreSQL" | "Redis";

/** A fresh store, open. */
async function storeOn(kind: Kind, scope: Scope): Promise<RecordStore> {
  const name = `move_${++made}`;
  const make: Readonly<Record<Kind, () => RecordStore>> = {
    SQLite: () => sqliteStore(join(folder, `${name}.db`)),
    PostgreSQL: () => postgresStore(postgres.url, { schema: name, logger: silent }),
    Redis: () => redisStore(redis.url, { prefix: name, logger: silent }),
  };
  const store = scope.add(make[kind](), (one) => one.close());
  await store.open();
  return store;
}

/** Records of every kind; what is leased is leased to a process that died long ago. */
async function fill(store: RecordStore, count = 250): Promise<ReadonlyMap<string, PutRecord>> {
  const now = store.now(keyOf(0));
  const records = new Map<string, IdempotencyRecord>();
  for (let n = 0; n < count; n++) {
    const key = keyOf(n);
    const sample = { id: `tx-${n}`, referenceId: `order-${n}` };
    const waiting = acceptedRecord(key, now, sample);
    const kinds = [
      waiting,
      begunRecord(key, now - HOUR_MS, acceptedRecord(key, now - HOUR_MS, sample), 1_000),
      acceptedRecord(key, now, { ...sample, held: "malformed" }),
      waiting,
      referenceRecord(keyOf(n + 1), now, HOUR_MS),
    ];
    records.set(key, kinds[n % kinds.length] ?? waiting);
  }
  const written = new Map(await putAll(store, records));
  // Finished the way an event finishes, so that lists keep what they know of it.
  for (let n = 3; n < count; n += 5) {
    const before = written.get(keyOf(n));
    if (before === undefined) continue;
    written.set(
      before.key,
      await put(store, before.key, before, endedRecord(before.key, store.now(before.key), before.record)),
    );
  }
  return written;
}

/** All of it is in one of the two stores, each record in one only. Answers how many are in the second. */
async function expectAll(
  written: ReadonlyMap<string, PutRecord>,
  from: RecordStore,
  to: RecordStore,
): Promise<number> {
  let moved = 0;
  for (const [key, one] of written) {
    const [old, now] = [await readOne(from, key), await readOne(to, key)];
    expectSame(old ?? now, one);
    expect(old === null || now === null).toBe(true);
    if (now !== null) moved++;
  }
  return moved;
}

const ways: readonly (readonly [Kind, Kind])[] = [
  ["SQLite", "PostgreSQL"],
  ["PostgreSQL", "Redis"],
  ["Redis", "SQLite"],
];

describe("moveRecords", () => {
  it.each(ways)("moves everything from %s to %s, with the texts by which it is found", (source, target) =>
    withScope(async (scope) => {
      const [from, to] = [await storeOn(source, scope), await storeOn(target, scope)];
      const written = await fill(from);
      const before = await countsByReason(from);
      expect(before).toMatchObject({ waiting: 50, running: 50, held: 50 });
      const events = { waiting: 50, retrying: 0, running: 50, held: 50, finished: 50 };
      const planned = await moveRecords(from, to, { dryRun: true });
      expect(planned).toEqual({ records: 250, events, alreadyPresent: 0, notMoved: [] });
      expect(await expectAll(written, from, to)).toBe(0);

      expect(await moveRecords(from, to)).toEqual({ records: 250, events, alreadyPresent: 0, notMoved: [] });
      expect(await expectAll(written, from, to)).toBe(250);
      expect(await countsByReason(to)).toMatchObject({ waiting: 50, running: 50, held: 50 });
      expect(await countsByReason(from)).toMatchObject({
        waiting: 0,
        running: 0,
        held: 0,
        oldestDueAt: null,
      });
      expect(await from.list({}, null, 10)).toEqual({ events: [], next: null });
      // A look finds the events that wait, those that a dead process had begun, and held ones whose onHeld handlers were not called.
      expect((await takeOfBothLanes(to, 1_000, 1_000)).records).toHaveLength(150);

      const nothing = { waiting: 0, retrying: 0, running: 0, held: 0, finished: 0 };
      expect(await moveRecords(from, to)).toEqual({
        records: 0,
        events: nothing,
        alreadyPresent: 0,
        notMoved: [],
      });
    }),
  );

  it("keeps the references of finished events, because people look for events by them", () =>
    withScope(async (scope) => {
      const [from, to] = [await storeOn("SQLite", scope), await storeOn("PostgreSQL", scope)];
      await fill(from, 20);
      await moveRecords(from, to);
      const { events } = await to.list({ referenceId: "order-8", state: "finished" }, null, 10);
      expect(events.map(({ eventId }) => eventId.slice(0, 32))).toEqual([keyOf(8)]);
    }));

  it.each([
    ["after it was written to the new one", "to"],
    ["after it was taken out of the old one", "from"],
  ] as const)("goes on where it was interrupted: %s", (_, dies) =>
    withScope(async (scope) => {
      const [from, to] = [await storeOn("SQLite", scope), await storeOn("PostgreSQL", scope)];
      const written = await fill(from);
      /** The process dies behind the second write to this store. */
      const dying = (store: RecordStore): RecordStore => {
        let writes = 0;
        const swap: RecordStore["swap"] = async (items) => {
          const results = await store.swap(items);
          if (++writes === 2) throw new Error("killed");
          return results;
        };
        return Object.create(store, { swap: { value: swap } }) as RecordStore;
      };
      const bound = (store: RecordStore): RecordStore => boundTo(store);
      const [source, target] =
        dies === "from" ? [dying(bound(from)), bound(to)] : [bound(from), dying(bound(to))];
      await expect(moveRecords(source, target)).rejects.toThrow("killed");
      const report = await moveRecords(from, to);
      expect(report).toMatchObject({ alreadyPresent: dies === "to" ? 100 : 0, notMoved: [] });
      expect(await expectAll(written, from, to)).toBe(250);
    }),
  );

  it.each(ways)(
    "replaces copies that an interrupted move from %s left in %s, with the texts by which they are found",
    (source, target) =>
      withScope(async (scope) => {
        const [from, to] = [await storeOn(source, scope), await storeOn(target, scope)];
        const written = new Map(await fill(from, 10));
        const dying = Object.create(boundTo(from), {
          swap: { value: () => Promise.reject(new Error("killed")) },
        }) as RecordStore;
        await expect(moveRecords(dying, to)).rejects.toThrow("killed");
        // The old receiver runs every event that waits, and those that are leased to a dead process.
        for (const n of [0, 1, 5, 6]) {
          const before = written.get(keyOf(n));
          if (before === undefined) continue;
          const { key } = before;
          written.set(key, await put(from, key, before, endedRecord(key, from.now(key), before.record)));
        }
        expect(await moveRecords(from, to)).toMatchObject({ records: 10, notMoved: [] });
        expect(await expectAll(written, from, to)).toBe(10);
        expect(await countsByReason(to)).toMatchObject({ waiting: 0, running: 0, held: 2 });
        // Only the onHeld handlers of the two held events are left to call.
        expect((await takeOfBothLanes(to, 1_000, 1_000)).records).toHaveLength(2);
      }),
  );

  it("moves nothing while an event is leased to a living process", () =>
    withScope(async (scope) => {
      const [from, to] = [await storeOn("PostgreSQL", scope), await storeOn("Redis", scope)];
      const written = new Map(await fill(from, 10));
      const key = keyOf(900);
      const now = from.now(key);
      written.set(key, await put(from, key, null, begunRecord(key, now, acceptedRecord(key, now), HOUR_MS)));
      const error = { code: "ERR_INBOX_IN_USE" };
      await expect(moveRecords(from, to)).rejects.toMatchObject(error);
      await expect(moveRecords(from, to, { dryRun: true })).rejects.toMatchObject(error);
      expect(await expectAll(written, from, to)).toBe(0);
    }));

  it("takes back an event that a receiver of the old inbox begins at that moment, and stops", () =>
    withScope(async (scope) => {
      const [from, to] = [await storeOn("SQLite", scope), await storeOn("PostgreSQL", scope)];
      const written = new Map(await fill(from, 100));
      const key = keyOf(0);
      const meanwhile: RecordStore["replicated"] = async () => {
        const before = written.get(key);
        if (before === undefined) return;
        const now = from.now(key);
        written.set(key, await put(from, key, before, begunRecord(key, now, before.record, HOUR_MS)));
      };
      const target = Object.create(boundTo(to), { replicated: { value: meanwhile } }) as RecordStore;
      await expect(moveRecords(from, target)).rejects.toMatchObject({ code: "ERR_INBOX_IN_USE" });
      expect(await readOne(to, key)).toBeNull();
      expect(await expectAll(written, from, to)).toBe(99);
    }));

  it("leaves events that the new inbox took itself, and says so; moved events that ran there are no conflict", () =>
    withScope(async (scope) => {
      const [from, to] = [await storeOn("SQLite", scope), await storeOn("PostgreSQL", scope)];
      const now = from.now(keyOf(0));
      const [copied, ran] = [keyOf(1), keyOf(2)];
      const done = await put(from, copied, null, endedRecord(copied, now, acceptedRecord(copied, now)));
      const waiting = await put(from, ran, null, acceptedRecord(ran, now));
      // A copy that the new inbox took for a new event, and an event that an earlier, interrupted move had brought.
      await put(to, copied, null, acceptedRecord(copied, now - 5));
      await put(to, ran, null, endedRecord(ran, now, waiting.record));
      expect(await moveRecords(from, to)).toMatchObject({
        records: 1,
        alreadyPresent: 1,
        notMoved: [{ key: copied, why: "conflict" }],
      });
      expectSame(await readOne(from, copied), done);
      expect(await readOne(from, ran)).toBeNull();
      expect(eventIds(ran, waiting.record)).toHaveLength(1);
    }));

  it("refuses an inbox in memory, and a move of an inbox to itself", () =>
    withScope(async (scope) => {
      const from = await storeOn("SQLite", scope);
      const error = { code: "ERR_OPTION_INVALID" };
      await expect(moveRecords(from, from)).rejects.toMatchObject(error);
      await expect(moveRecords(from, memoryStore())).rejects.toMatchObject(error);
      await expect(moveRecords(memoryStore(), from)).rejects.toMatchObject(error);
      await expect(moveRecords(from, null)).rejects.toMatchObject(error);
      expect(await moveRecords(from, null, { dryRun: true })).toMatchObject({ notMoved: [] });
    }));
});

/** The store's methods on their own object, so that one of them can be replaced. */
function boundTo(store: RecordStore): RecordStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
