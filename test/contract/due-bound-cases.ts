/** Looks for due records begin where the last one ended. Nothing that is due may be passed over by that. */
import { expect } from "vitest";
import type { RecordStore } from "../../packages/core/src/inbox/contract/store.ts";
import { indexOf } from "../../packages/core/src/inbox/record/index-of.ts";
import { type FakeClock, fakeClock } from "../../packages/core/src/testing/clock.ts";
import { acceptedRecord, HOUR_MS, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put, takeOfBothLanes } from "../../packages/core/src/testing/store/writes.ts";
import { type Scope, withScope } from "../faults/harness/scope.ts";

interface ConnectOptions {
  readonly clock: FakeClock;
  readonly statementTimeoutMs: number;
}

/** A server on which a store keeps its records. */
export interface DueServer {
  /** New tables: the one of the records, a store that is open, and further stores on the same data. */
  open(own: Scope): Promise<{
    readonly table: string;
    readonly store: RecordStore;
    readonly connect: (options?: ConnectOptions) => RecordStore;
  }>;
  tell(sql: string): Promise<unknown>;
  /** Locks the rows of a query in a session of its own, until the returned function is called. */
  lock(own: Scope, query: string): Promise<() => Promise<unknown>>;
  /** Locks a whole table in the same way. */
  lockTable(own: Scope, table: string): Promise<() => Promise<unknown>>;
  /** Ends the complete looks that wait for a lock. Returns how many there were. */
  cancelLooks(table: string): Promise<number>;
}

/** Due since an hour, as its writer says. */
async function late(store: RecordStore, key: string): Promise<void> {
  const record = acceptedRecord(key, store.now(key));
  await put(store, key, null, record, {
    index: { ...indexOf(key, record), dueAt: store.now(key) - HOUR_MS },
  });
}

const taken = async (store: RecordStore, limit = 10, hideMs = 60_000): Promise<readonly string[]> =>
  (await takeOfBothLanes(store, limit, hideMs)).records.map(({ key }) => key);

interface DueCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

export function dueBoundCases({ open, tell, lock, lockTable, cancelLooks }: DueServer): readonly DueCase[] {
  const on = (name: string, run: (own: Scope) => Promise<void>): DueCase => ({
    name,
    run: () => withScope(run),
  });
  return [
    on("a record that another process writes with an old due time is found by the next look", async (own) => {
      const { store, connect } = await open(own);
      const other = connect();
      await other.open();
      expect(await taken(store)).toEqual([]);
      await late(other, keyOf(1));
      expect(await taken(store)).toEqual([keyOf(1)]);
    }),
    on(
      "records that were due long before the process began are found by its first look, and the rest by later ones",
      async (own) => {
        const { table, store, connect } = await open(own);
        for (const n of [1, 2, 3]) await late(store, keyOf(n));
        await tell(`UPDATE ${table} SET due_at = row_id`);
        const next = connect();
        await next.open();
        expect((await takeOfBothLanes(next, 0, 0)).left).toBe(3);
        expect(await taken(next, 1)).toEqual([keyOf(1)]);
        expect(await taken(next, 1)).toEqual([keyOf(2)]);
        expect((await next.counts()).oldestDueAt).toBe(3);
        expect(await taken(next, 1)).toEqual([keyOf(3)]);
        expect(await taken(next, 1)).toEqual([]);
      },
    ),
    on("a record that another transaction had locked is found once it is free", async (own) => {
      const { table, store } = await open(own);
      for (const n of [1, 2]) await late(store, keyOf(n));
      await tell(`UPDATE ${table} SET due_at = row_id`);
      const release = await lock(own, `SELECT row_id FROM ${table} WHERE row_id = 1 FOR UPDATE`);
      const { records, left } = await takeOfBothLanes(store, 10, 60_000);
      expect(records.map(({ key }) => key)).toEqual([keyOf(2)]);
      expect(left).toBeGreaterThan(0);
      expect(await taken(store)).toEqual([]);
      await release();
      expect(await taken(store)).toEqual([keyOf(1)]);
    }),
    on("a record that is no longer hidden is found", async (own) => {
      const { store } = await open(own);
      await late(store, keyOf(1));
      for (let round = 0; round < 3; round++) {
        await expect.poll(() => taken(store, 1, 1).then(({ length }) => length)).toBe(1);
      }
    }),
    on("a record that fell due before the bound is passed over until a complete look", async (own) => {
      const { table, store, connect } = await open(own);
      await late(store, keyOf(1));
      expect(await taken(store)).toEqual([keyOf(1)]);
      await tell(`UPDATE ${table} SET due_at = 1`);
      expect(await taken(store)).toEqual([]);
      const next = connect();
      await next.open();
      expect(await taken(next)).toEqual([keyOf(1)]);
    }),
    on(
      "a complete look that fails is reported by a poll, and the next polls take what fell due lately",
      async (own) => {
        const { table, store, connect } = await open(own);
        const clock = fakeClock();
        const next = connect({ clock, statementTimeoutMs: 30_000 });
        await next.open();
        const release = await lockTable(own, table);
        const first = taken(next).then(
          () => "taken",
          () => "failed",
        );
        await expect.poll(() => cancelLooks(table)).toBeGreaterThan(0);
        await release();
        expect(await first).toBe("failed");
        await late(store, keyOf(1));
        expect(await taken(next)).toEqual([keyOf(1)]);

        await clock.advance(600_000);
        const releaseAgain = await lockTable(own, table);
        const beside = taken(next);
        await expect.poll(() => cancelLooks(table)).toBeGreaterThan(0);
        await releaseAgain();
        expect(await beside).toEqual([]);
        await expect
          .poll(
            () =>
              taken(next).then(
                () => "taken",
                () => "failed",
              ),
            { interval: 1 },
          )
          .toBe("failed");
        await late(store, keyOf(2));
        expect(await taken(next)).toEqual([keyOf(2)]);
      },
    ),
  ];
}
