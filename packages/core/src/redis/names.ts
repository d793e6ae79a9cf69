import { isUnreadable } from "../inbox/record/codec.ts";
import { digestOf, isDigest } from "../inbox/record/digest.ts";
import { recordKeyOf } from "../inbox/record/event.ts";
import { type EventLabels, indexOf } from "../inbox/record/index-of.ts";
import type { ListedEvent, Swap, Versioned } from "../inbox/store.ts";
import type { Groups } from "./groups.ts";
import { cursorOf, DONE } from "./lists.ts";
import { ALL_MEMBERS, MEMBERS, PRUNE } from "./scripts.ts";
import type { Shards } from "./shards.ts";

/*
 * What a searchable inbox keeps besides: for each reference a sorted set of the records that it leads to, scored by when they
 * go, which goes with the last of them; and a list of what has ended. Both lie in their record's shard, so that they are
 * written with it, and are looked for in all of them.
 */

/** Events that are found for one text. */
const MAX_FOUND = 1_000;
/** Ended events of each shard that are looked at in one step. */
const PRUNED_AT_ONCE = 20;

/** The name of the set for a reference, also where only its digest is known. */
function nameOf(text: string): string {
  return `ref:${isDigest(text) ? text : digestOf(text)}`;
}

const textsOf = ({ referenceId, foundBy }: EventLabels): readonly string[] =>
  referenceId === null ? foundBy : [referenceId, ...foundBy];

/** The sets that a write has to put its record into, and until when. None where nothing about that changes. */
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

/** The events, ended ones too, to which a reference leads. */
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

/** Of what has ended, the record says its reference as a digest, or not at all: the name that has led here says it. */
function eventOf(event: EventLabels, text: string, versioned: Versioned): readonly ListedEvent[] {
  const isUnknown = event.state === "done" && event.referenceId === null;
  if (!isUnknown && !textsOf(event).includes(text)) return [];
  const { eventId, acceptedAt } = event;
  const isEntry = event.event === "";
  const { foundBy: _, ...summary } = isUnknown && !isEntry ? { ...event, referenceId: text } : event;
  return [{ eventId, acceptedAt, versioned, summary }];
}

/** Takes some of what has expired off the lists of what has ended. True when there may be more. */
export async function pruneEnded(shards: Shards, groups: Groups): Promise<boolean> {
  const pruned = await Promise.all(
    shards.all.map(async (shard) => {
      const group = groups.of(shard);
      const set = shard.keyOf(DONE);
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
