/** Many finished records, written into a store as they are: to deliver that many takes an hour. */
import { createHash, randomUUID } from "node:crypto";
import {
  createInbox,
  type IdempotencyRecord,
  memoryStore,
  type RecordStore,
  type Swap,
} from "@payhooks/core/inbox";
import type { Runner } from "../../packages/core/src/inbox/contract/inbox.ts";
import { indexOf } from "../../packages/core/src/inbox/record/index-of.ts";
import { benchEvent } from "./redis-event.ts";

const TOGETHER = 500;

/** A runner whose handlers have nothing to do. */
export const idleRunner: Runner = {
  run: async () => ({ outcome: { kind: "done" }, changes: [], onWritten: () => {} }),
  firstHandler: () => null,
  handlersOf: () => [],
  notify: () => {},
};

/** Adds finished deposits to an open store, each with a key and an id of its own. */
export async function fillStore(
  store: RecordStore,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const finished = await finishedRecord();
  for (let n = from; n < to; n += TOGETHER) {
    const keys = Array.from({ length: Math.min(TOGETHER, to - n) }, (_, i) => keyOf(n + i)).sort();
    const results = await store.swap(keys.map((key) => added(key, finished, store.now(key))));
    const refused = results.find(({ kind }) => kind !== "written");
    if (refused !== undefined) throw new Error(`a record was not written: ${refused.kind}`);
  }
}

function added(key: string, finished: IdempotencyRecord, at: number): Swap {
  const record = { ...finished, id: randomUUID() };
  return {
    key,
    expected: null,
    version: key.slice(0, 16),
    record,
    index: indexOf(key, record),
    before: null,
    at,
    shouldAnnounce: false,
  };
}

/** A record's key: as random as a hash is. */
const keyOf = (n: number): string => createHash("md5").update(`record ${n}`).digest("hex");

/** A deposit that was accepted and run, as every store keeps it. */
async function finishedRecord(): Promise<IdempotencyRecord> {
  const store = memoryStore();
  const inbox = createInbox(store);
  const event = benchEvent();
  await inbox.accept(event);
  await inbox.work(idleRunner, { deadlineMs: 1_000, limit: 1, concurrency: 1 });
  const [found] = store.read([event.key]);
  if (found === null || found === undefined || !("slots" in found.record))
    throw new Error("nothing finished");
  return found.record;
}
