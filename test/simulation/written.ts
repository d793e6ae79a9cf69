import type { IdempotencyRecord, Swap, SwapResult } from "@payhooks/core/inbox";
import type { Write } from "./chronicle.ts";
import { recordIn } from "./sealed.ts";
import type { Owner } from "./timeline.ts";
import { type FaultTarget, storeNow, type World } from "./world.ts";

/** The process that writes. */
export interface Writer extends FaultTarget, Owner {
  readonly number: number;
  /** It writes records in the new format, and can read those. */
  readonly isNewVersion: boolean;
}

/** Makes one write in the store, and notes its change. */
export function written(world: World, process: Writer, item: Swap): SwapResult {
  const { store, chronicle, timeline, marks } = world;
  const { key } = item;
  marks.push({ at: timeline.now, mark: store.mark });
  const before = recordOf(world, key);
  const [result = NOTHING] = store.swap([item]);
  if (result.kind !== "written") {
    chronicle.log(
      timeline.now,
      "store",
      () => `${process.name}'s write of ${key.slice(0, 6)}: ${result.kind}`,
    );
    return result;
  }
  // A claim or a subject in a new format waits until the old processes are gone, however long that takes.
  const hasEvents = Object.keys(item.record.slots).length > 0;
  if (process.isNewVersion && hasEvents) world.newFormats.add(item.version);
  const after = item.record;
  const write: Write = {
    at: timeline.now,
    now: storeNow(world),
    process: process.name,
    key,
    before,
    after,
    isNewFormat: process.isNewVersion,
  };
  const token = after.lease?.token;
  // A write that is carried twice may be made twice, if the store forgot it in between: the first one counts.
  const isBegin = token !== undefined && token !== before?.lease?.token;
  if (isBegin && !chronicle.begins.has(token)) chronicle.begins.set(token, write);
  chronicle.writes.push(write);
  chronicle.log(timeline.now, "store", () => `has written ${key.slice(0, 6)} for ${process.name}`);
  return result;
}

const NOTHING: SwapResult = { kind: "not-written", cause: new Error("nothing was asked for") };

/** The record as the store has it. */
export function recordOf({ store }: Pick<World, "store">, key: string): IdempotencyRecord | null {
  return recordIn(store, key);
}

/** True if an event has ended, or waits for a person. */
export function isFinal(state: IdempotencyRecord["slots"][string]["state"]): boolean {
  return state !== "waiting" && state !== "running";
}
