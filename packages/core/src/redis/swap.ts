import type { Swap, SwapResult } from "../inbox/contract/store.ts";
import { isCanary } from "../inbox/record/canary.ts";
import { encodeRecord } from "../inbox/record/codec.ts";
import type { EventLabels, RecordIndex } from "../inbox/record/index-of.ts";
import { isReply, noRoomError, writeOutcomeOf } from "./failure.ts";
import { type Group, type Groups, partitionByGroup } from "./groups.ts";
import { listNameOf, memberOf } from "./lists.ts";
import { SWAP_SCRIPT } from "./scripts.ts";
import type { Shard, Shards } from "./shards.ts";
import { storedTextOf, versionedRecordOf, versionPrefixOf } from "./stored-text.ts";

/**
 * How many records one script writes at most. Redis does nothing else while a script runs; such a script takes well below a
 * millisecond.
 */
const MAX_BATCH_WRITES = 50;
/** How many characters one script writes at most. For longer texts, a second command costs less. */
const MAX_BATCH_CHARS = 30_000;

/** One write, in the form that the script takes. */
interface ScriptWrite {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly length: number;
}

/** Makes each write independently. Writes of one group share as few scripts as the limits above allow. */
export async function swapRecords(
  shards: Shards,
  groups: Groups,
  items: readonly Swap[],
): Promise<readonly SwapResult[]> {
  const results = new Map<Swap, SwapResult>();
  const sends: Promise<void>[] = [];
  for (const [group, groupItems] of partitionByGroup(groups, items, ({ key }) => shards.shardOf(key))) {
    for (const batch of batchesOf(
      groupItems.map((item) => ({ item, ...buildScriptWrite(shards.shardOf(item.key), item) })),
    )) {
      sends.push(send(group, batch, (item, result) => results.set(item, result)));
    }
  }
  await Promise.all(sends);
  return items.map((item) => results.get(item) ?? writeOutcomeOf(null));
}

type Batch = readonly (ScriptWrite & { readonly item: Swap })[];

function batchesOf(writes: Batch): readonly Batch[] {
  const batches: Batch[] = [];
  let start = 0;
  let length = 0;
  writes.forEach((write, index) => {
    if (index > start && (index - start === MAX_BATCH_WRITES || length + write.length > MAX_BATCH_CHARS)) {
      batches.push(writes.slice(start, index));
      [start, length] = [index, 0];
    }
    length += write.length;
  });
  batches.push(writes.slice(start));
  return batches;
}

async function send(
  group: Group,
  batch: Batch,
  settle: (item: Swap, result: SwapResult) => void,
): Promise<void> {
  try {
    const answers = await group.run(
      SWAP_SCRIPT,
      batch.flatMap(({ keys }) => keys),
      batch.flatMap(({ args }) => args),
    );
    batch.forEach(({ item }, index) => {
      settle(item, resultOf(answers[index]));
    });
  } catch (error) {
    const outcome = writeOutcomeOf(error);
    if (batch.length > 1 && outcome.kind !== "not-written" && isReply(error)) {
      // One of them is at fault, so each is sent by itself. A write that was made before finds its own record then.
      await Promise.all(batch.map((write) => send(group, [write], settle)));
      return;
    }
    for (const { item } of batch) settle(item, outcome);
  }
}

function resultOf(answer: unknown): SwapResult {
  if (answer === 0) return { kind: "not-written", cause: noRoomError() };
  if (typeof answer !== "string") return { kind: "written" };
  return { kind: "conflict", current: versionedRecordOf(answer) };
}

function buildScriptWrite(shard: Shard, item: Swap): ScriptWrite {
  const { key, expected, version, record, index, before, at } = item;
  const text = storedTextOf(version, encodeRecord(record));
  const keys = [shard.keyOf(key)];
  const moves: (string | number)[] = [];
  const move = (set: string, member: string, score: number | string): void => {
    keys.push(set);
    moves.push(member, score);
  };
  // This is done even if the time does not change: the record may be hidden, and a write ends that.
  const wasDue = before !== null && before.dueAt !== null;
  if (wasDue && (index.dueAt === null || before.lane !== index.lane)) move(shard.due[before.lane], key, "");
  if (index.dueAt !== null) move(shard.due[index.lane], key, Math.ceil(index.dueAt));
  for (const { from, to, member } of movesBetween(before, index)) {
    if (from !== null) move(shard.keyOf(from), member, "");
    if (to !== null) move(shard.keyOf(to), member, 0);
  }
  const expiry = index.expiresAt === null ? "" : Math.ceil(index.expiresAt);
  const expectedText = expected === null ? "" : versionPrefixOf(expected);
  return {
    keys,
    args: [expectedText, at, text, expiry, addsEvent(item) ? "1" : "", keys.length - 1, ...moves],
    length: text.length,
  };
}

/**
 * A full Redis takes no such write. Each of the others makes a record longer by a bounded text at most, or makes the
 * small record of a subject. An event that is stored already needs that record to run.
 */
function addsEvent({ key, index, before, expected, record }: Swap): boolean {
  // A new record that is leased and has no events is a subject's, or a canary.
  if (expected === null) return isCanary(key) || record.lease === null || index.events.length > 0;
  const knownIds = new Set(before?.events.map(({ eventId }) => eventId));
  return index.events.some(({ eventId }) => !knownIds.has(eventId));
}

interface Move {
  readonly member: string;
  readonly from: string | null;
  readonly to: string | null;
}

/** The moves of events from list to list. */
function movesBetween(before: RecordIndex | null, after: RecordIndex): readonly Move[] {
  const moves: Move[] = [];
  const oldById = new Map<string, EventLabels>();
  for (const event of before?.events ?? []) oldById.set(event.eventId, event);
  for (const event of after.events) {
    const old = oldById.get(event.eventId);
    oldById.delete(event.eventId);
    const from = old === undefined ? null : listNameOf(old);
    const to = listNameOf(event);
    if (from !== to) moves.push({ member: memberOf(event), from, to });
  }
  for (const removed of oldById.values())
    moves.push({ member: memberOf(removed), from: listNameOf(removed), to: null });
  return moves;
}
