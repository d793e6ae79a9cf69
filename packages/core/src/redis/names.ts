import { isUnreadable } from "../inbox/record/codec.ts";
import { digestOf, isDigest } from "../inbox/record/digest.ts";
import { recordKeyOf } from "../inbox/record/event.ts";
import { type EventLabels, indexOf } from "../inbox/record/index-of.ts";
import type { ListedEvent, Swap, Versioned } from "../inbox/store.ts";
import type { Groups } from "./groups.ts";
import { cursorOf, FINISHED } from "./lists.ts";
import { ALL_MEMBERS, MEMBERS, PRUNE } from "./scripts.ts";
import type { Shards } from "./shards.ts";

/*
 * The additional data of a searchable inbox. Each reference has a sorted set of the records that have it, scored by the time at
 * which they expire. The set expires with the last of them. There is also a list of ended events. Both are in the shard of
 * their record, so that they are written together with it. A search looks in all shards.
 */

/** How many events are found for one text at most. */
const MAX_FOUND = 1_000;
/** How many ended events of each shard one step looks at. */
const PRUNED_AT_ONCE = 20;

/** The name of the set for a reference, which may be given as its digest. */
function nameOf(text: string): string {
  return `ref:${isDigest(text) ? text : digestOf(text)}`;
}

const textsOf = ({ referenceId, foundBy }: EventLabels): readonly string[] =>
  referenceId === null ? foundBy : [referenceId, ...foundBy];

/** The sets that a write has to put its record into, and until when it stays there. None if nothing changes about them. */
export function namesOf({
  index,
  before,
  record,
}: Swap): readonly { readonly name: string; readonly until: number | "inf" }[] {
  const known = new Set(before?.events.map(({ eventId }) => eventId));
  const isNews = index.events.some(({ eventId }) => !known.has(eventId));
  if (!isNews && index.expiresAt === (before?.expiresAt ?? null)) return [];
  const texts = [...index.events, ...(before?.events ?? [])].flatMap(textsOf);
  const { referenceId } = record.identity;
  const names = new Set((referenceId === undefined ? texts : [...texts, referenceId]).map(nameOf));
  const until = index.expiresAt === null ? "inf" : Math.ceil(index.expiresAt);
  return index.events.length === 0 ? [] : [...names].map((name) => ({ name, until }));
}

/** The events, including ended ones, that have a reference. */
export async function findEvents(
  groups: Groups,
  text: string,
  read: (keys: readonly string[]) => Promise<readonly (Versioned | null)[]>,
): Promise<readonly ListedEvent[]> {
  const name = nameOf(text);
  const answers = await groups.runAll(ALL_MEMBERS, (shard) => [shard.keyOf(name)], [MAX_FOUND]);
  const keys = (answers.flat(2) as readonly string[]).slice(0, MAX_FOUND);
  const found = await read(keys);
  return keys.flatMap((key, at) => {
    const versioned = found[at] ?? null;
    if (versioned === null || isUnreadable(versioned.record)) return [];
    return indexOf(key, versioned.record).events.flatMap((event) => eventOf(event, text, versioned));
  });
}

/**
 * An event that was found. The record of an ended one has its reference only as a digest, or not at all. The name of the set
 * that led here then supplies it.
 */
function eventOf(event: EventLabels, text: string, versioned: Versioned): readonly ListedEvent[] {
  const isUnknown = event.state === "finished" && event.referenceId === null;
  if (!isUnknown && !textsOf(event).includes(text)) return [];
  const { eventId, acceptedAt } = event;
  const isEntry = event.event === "";
  const { foundBy: _, ...summary } = isUnknown && !isEntry ? { ...event, referenceId: text } : event;
  return [{ eventId, acceptedAt, versioned, summary }];
}

/** Removes some expired events from the lists of ended events. True if there may be more. */
export async function pruneEnded(shards: Shards, groups: Groups): Promise<boolean> {
  const pruned = await Promise.all(
    shards.all.map(async (shard) => {
      const group = groups.of(shard);
      const set = shard.keyOf(FINISHED);
      const [oldest = []] = (await group.run(
        MEMBERS,
        [set],
        ["-", "+", PRUNED_AT_ONCE, "oldest"],
      )) as readonly (readonly string[])[];
      if (oldest.length === 0) return false;
      const keys = oldest.map((member) => shard.keyOf(recordKeyOf(cursorOf(member).eventId)));
      const [gone] = await group.run(PRUNE, [set, ...keys], oldest);
      return Number(gone) === PRUNED_AT_ONCE;
    }),
  );
  return pruned.includes(true);
}
