/** A full Redis has to go on with everything but new events. */
import { expect } from "vitest";
import type { RecordStore, Swap } from "../../packages/core/src/inbox/contract/store.ts";
import type { IdempotencyRecord } from "../../packages/core/src/inbox/record/record.ts";
import {
  acceptedRecord,
  begunRecord,
  endedRecord,
  keyOf,
  referenceRecord,
} from "../../packages/core/src/testing/store/records.ts";
import { putAll, swapAll, swapOf, takeOfBothLanes } from "../../packages/core/src/testing/store/writes.ts";
import type { RedisServer } from "../faults/harness/redis-server.ts";
import { pause, until } from "../faults/harness/scope.ts";

const COUNT = 60;
const keys = Array.from({ length: COUNT }, (_, n) => keyOf(n));

export const fill = (server: RedisServer): Promise<unknown> => server.tell("CONFIG", "SET", "maxmemory", "1");

/** Sixty events that wait. */
export async function backlog(store: RecordStore): Promise<void> {
  const content = Buffer.alloc(2_000, "a");
  // Due for a while: the server's clock may be a little behind what the store takes for it.
  const at = (key: string): number => store.now(key) - 1_000;
  await putAll(store, new Map(keys.map((key) => [key, acceptedRecord(key, at(key), { content })])));
}

async function expectWritten(store: RecordStore, swaps: readonly Swap[]): Promise<void> {
  for (const result of await swapAll(store, swaps)) expect(result).toEqual({ kind: "written" });
}

/** All of them are taken and begun, and their leases end. */
export async function expectBegun(store: RecordStore): Promise<void> {
  const { records } = await takeOfBothLanes(store, 100, 1);
  expect(records).toHaveLength(COUNT);
  await expectWritten(
    store,
    records.map((one) => {
      const record = one.record as IdempotencyRecord;
      return swapOf(store, one.key, { ...one, record }, begunRecord(one.key, store.now(one.key), record, 1));
    }),
  );
  await until("their leases have ended", async () => (await store.counts()).oldestDueAt !== null);
  await pause(5);
}

/** A run takes the subject of its event, of which nothing is known yet. */
export async function expectSubjectTaken(store: RecordStore): Promise<void> {
  const key = keyOf(97);
  const now = store.now(key);
  const lease = { slot: "", token: "run", until: now + 1_000, originalLengthMs: 1_000 };
  await expectWritten(store, [swapOf(store, key, null, { ...referenceRecord("1", now, 60_000), lease })]);
}

/** All of them end, and nothing is left to do. */
export async function expectEnded(store: RecordStore): Promise<void> {
  const found = await store.read(keys);
  await expectWritten(
    store,
    keys.map((key, at) => {
      const one = found[at];
      if (one === null || one === undefined) expect.fail("no record");
      const record = one.record as IdempotencyRecord;
      return swapOf(
        store,
        key,
        { key, version: one.version, record },
        endedRecord(key, store.now(key), record),
      );
    }),
  );
  expect(await store.counts()).toMatchObject({ waiting: 0, running: 0 });
}
