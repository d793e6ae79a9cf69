import { type EventFilter, type HeldReason, recordKeyOf } from "../inbox/inbox.ts";
import { isUnreadable } from "../inbox/record/codec.ts";
import { type EventLabels, indexOf } from "../inbox/record/index-of.ts";
import type { ListCursor, Listed, Versioned } from "../inbox/store.ts";
import type { Groups } from "./groups.ts";
import { MEMBERS } from "./scripts.ts";
import type { Shard } from "./shards.ts";

const ACTIVE = ["waiting", "retrying", "running"] as const;
/** Every reason, whether anything is held for it or not. */
const REASONS: Readonly<Record<HeldReason, true>> = {
  ambiguous: true,
  malformed: true,
  unexpected: true,
  unrecognized: true,
  conflict: true,
  mismatch: true,
  "reference-reused": true,
  exhausted: true,
  rejected: true,
  crashed: true,
  unhandled: true,
};

/** The lists of a shard: of the events in each state that is not an end, and of those held for each reason. */
export type ListName = (typeof ACTIVE)[number] | `held:${HeldReason}`;

/** All of them. */
export const LISTS: readonly ListName[] = [
  ...ACTIVE,
  ...(Object.keys(REASONS) as HeldReason[]).map((reason) => `held:${reason}` as const),
];

/** The list that an event is on; null for one that has ended. */
export function listOf({ state, reason }: Pick<EventLabels, "state" | "reason">): ListName | null {
  if (state === "done") return null;
  if (state !== "held") return state;
  return reason === null ? null : `held:${reason}`;
}

/** A time in as many digits in every member, so that members sort by time. Enough until the year 5188. */
const TIME_DIGITS = 9;
/** The records of an event lie in one of 64 shards each: of any of them a page takes few. */
const PAGE_SHARE = 8;

function digitsOf(ms: number): string {
  return Math.max(0, ms).toString(36).padStart(TIME_DIGITS, "0");
}

/** An event in its list: members sort by time of acceptance, then by id. */
export function memberOf({ acceptedAt, eventId }: ListCursor): string {
  return digitsOf(Math.floor(acceptedAt)) + eventId;
}

function cursorOf(member: string): ListCursor {
  return {
    acceptedAt: Number.parseInt(member.slice(0, TIME_DIGITS), 36),
    eventId: member.slice(TIME_DIGITS),
  };
}

/** The lists on which an event that the filter lets pass can be. */
function listsOf({ state, reason }: EventFilter): readonly ListName[] {
  return LISTS.filter((name) => {
    const isHeld = name.startsWith("held:");
    if (reason !== undefined && name !== `held:${reason}`) return false;
    return state === undefined || (isHeld ? state === "held" : state === name);
  });
}

/** A page of what is not finished. It may be short: each list is asked for a share of it. */
export async function listEvents(
  groups: Groups,
  filter: EventFilter,
  cursor: ListCursor | null,
  limit: number,
  read: (keys: readonly string[]) => Promise<readonly (Versioned | null)[]>,
): Promise<Listed> {
  const names = listsOf(filter);
  if (names.length === 0) return { events: [], next: null };
  const { members, isLast } = await membersBehind(groups, names, boundsOf(filter, cursor), limit);
  const keys = [...new Set(members.map((member) => recordKeyOf(cursorOf(member).eventId)))];
  const found = await read(keys);
  const records = new Map(keys.map((key, at) => [key, found[at] ?? null]));
  const events: Listed["events"][number][] = [];
  for (const member of members) {
    const at = cursorOf(member);
    const versioned = records.get(recordKeyOf(at.eventId)) ?? null;
    if (versioned !== null && passes(filter, at.eventId, versioned)) events.push({ ...at, versioned });
  }
  const last = members.at(-1);
  return { events, next: isLast || last === undefined ? null : cursorOf(last) };
}

type Bounds = readonly [from: string, to: string];

function boundsOf({ since, until }: EventFilter, cursor: ListCursor | null): Bounds {
  const after = cursor === null ? "" : memberOf(cursor);
  const from = since === undefined ? "" : digitsOf(Math.ceil(since));
  const to = until === undefined ? "+" : `(${digitsOf(Math.ceil(until))}`;
  if (after >= from) return [after === "" ? "-" : `(${after}`, to];
  return [`[${from}`, to];
}

/** The next members over all lists, in their order, as far as it is certain that none is missing between them. */
async function membersBehind(
  groups: Groups,
  names: readonly ListName[],
  bounds: Bounds,
  limit: number,
): Promise<{ readonly members: readonly string[]; readonly isLast: boolean }> {
  const share = Math.max(1, Math.ceil(limit / PAGE_SHARE));
  const keysOf = (shard: Shard) => names.map((name) => shard.keyOf(name));
  const answers = await groups.runAll(MEMBERS, keysOf, [...bounds, share]);
  const lists = answers.flat() as readonly (readonly string[])[];
  /** Behind it, a list that gave its whole share may have more. */
  let certain: string | null = null;
  for (const list of lists) {
    const last = list.length < share ? undefined : list.at(-1);
    if (last !== undefined && (certain === null || last < certain)) certain = last;
  }
  const all = lists.flat().sort();
  const members = all.filter((member) => certain === null || member <= certain).slice(0, limit);
  return { members, isLast: certain === null && members.length === all.length };
}

/** What stands in the record decides: it may have moved on since it was listed. */
function passes(filter: EventFilter, eventId: string, { record }: Versioned): boolean {
  if (isUnreadable(record)) return true;
  const event = indexOf(recordKeyOf(eventId), record).events.find((one) => one.eventId === eventId);
  if (event === undefined || listOf(event) === null) return false;
  const fields = ["state", "reason", "flow", "tenant", "event", "referenceId", "id"] as const;
  return fields.every((field: keyof EventFilter & keyof EventLabels) => {
    return filter[field] === undefined || filter[field] === event[field];
  });
}
