import type { EventFilter } from "../inbox/contract/event-query.ts";
import type {
  ListCursor,
  ListedEvent,
  ListOrder,
  ListPage,
  VersionedRecord,
} from "../inbox/contract/store.ts";
import { isUnreadable } from "../inbox/record/codec.ts";
import { recordKeyOf } from "../inbox/record/event.ts";
import { type EventLabels, indexOf } from "../inbox/record/index-of.ts";
import { notSearchableError } from "../inbox/search/event-reader.ts";
import { matchesFilter } from "../inbox/search/listing.ts";
import { HELD_REASONS, type HeldReason } from "../protocol/held-reasons.ts";
import type { Groups } from "./groups.ts";
import { MEMBERS_SCRIPT } from "./scripts.ts";
import type { Shard } from "./shards.ts";

const ACTIVE_STATES = ["waiting", "retrying", "running"] as const;

/** The lists of a shard: one for each state of unfinished events, and one for each reason to hold events. */
export type ListName = (typeof ACTIVE_STATES)[number] | `held:${HeldReason}`;

/** All lists of a shard. */
export const LIST_NAMES: readonly ListName[] = [
  ...ACTIVE_STATES,
  ...(Object.keys(HELD_REASONS) as HeldReason[]).map((reason) => `held:${reason}` as const),
];

/** The list that an event is on; null for an event that has ended. */
export function listNameOf({ state, reason }: Pick<EventLabels, "state" | "reason">): ListName | null {
  if (state === "finished") return null;
  if (state !== "held") return state;
  return reason === null ? null : `held:${reason}`;
}

/** Each member begins with a time in this many digits, so that members sort by time. Enough until the year 5188. */
const TIME_DIGITS = 9;
/** Each shard's list is asked for this fraction of a page: with 64 shards, few events of a page are in any one of them. */
const PAGE_SHARE = 8;

function digitsOf(ms: number): string {
  return Math.max(0, ms).toString(36).padStart(TIME_DIGITS, "0");
}

/** The member of a list for an event. Members sort by time of acceptance, then by id. */
export function memberOf({ acceptedAt, eventId }: ListCursor): string {
  return digitsOf(Math.floor(acceptedAt)) + eventId;
}

/** The reverse of {@link memberOf}. */
function cursorOf(member: string): ListCursor {
  return {
    acceptedAt: Number.parseInt(member.slice(0, TIME_DIGITS), 36),
    eventId: member.slice(TIME_DIGITS),
  };
}

/** The lists that can have an event that matches the filter. */
function listsOf({ state, reason }: EventFilter): readonly ListName[] {
  return LIST_NAMES.filter((name) => {
    const isHeld = name.startsWith("held:");
    if (reason !== undefined && name !== `held:${reason}`) return false;
    return state === undefined || (isHeld ? state === "held" : state === name);
  });
}

export interface ListDependencies {
  readonly groups: Groups;
  readonly read: (keys: readonly string[]) => Promise<readonly (VersionedRecord | null)[]>;
}

/** A page of a list. It may be short, because each shard's list is asked only for a share of it. */
export async function listEvents(
  { groups, read }: ListDependencies,
  filter: EventFilter,
  cursor: ListCursor | null,
  limit: number,
  first: ListOrder,
): Promise<ListPage> {
  if (filter.state === "finished" || filter.state === "any") throw notSearchableError("Redis");
  const names = listsOf(filter);
  if (names.length === 0) return { events: [], next: null };
  const page = { ...boundsOf(filter, cursor, first), limit, first };
  const { members, isLast } = await membersBehind(groups, names, page);
  const keys = [...new Set(members.map((member) => recordKeyOf(cursorOf(member).eventId)))];
  const storedRecords = await read(keys);
  const records = new Map(keys.map((key, index) => [key, storedRecords[index] ?? null]));
  const events: ListedEvent[] = [];
  for (const member of members) {
    const position = cursorOf(member);
    const versioned = records.get(recordKeyOf(position.eventId)) ?? null;
    if (versioned !== null && fitsFilter(filter, position.eventId, versioned))
      events.push({ ...position, versioned });
  }
  const last = members.at(-1);
  return { events, next: isLast || last === undefined ? null : cursorOf(last) };
}

/** Bounds of members, in the notation of Redis. */
interface Bounds {
  readonly least: string;
  readonly greatest: string;
}

function boundsOf({ since, until }: EventFilter, cursor: ListCursor | null, first: ListOrder): Bounds {
  const cursorMember = cursor === null ? null : memberOf(cursor);
  const from = since === undefined ? null : digitsOf(Math.ceil(since));
  const to = until === undefined ? null : digitsOf(Math.ceil(until));
  const isBehind = cursorMember !== null && first === "oldest" && (from === null || cursorMember >= from);
  const isBefore = cursorMember !== null && first === "newest" && (to === null || cursorMember < to);
  return {
    least: isBehind ? `(${cursorMember}` : from === null ? "-" : `[${from}`,
    greatest: isBefore ? `(${cursorMember}` : to === null ? "+" : `(${to}`,
  };
}

/** The next members of all lists, in their order. Members are left out if one before them may be missing. */
async function membersBehind(
  groups: Groups,
  names: readonly string[],
  { least, greatest, limit, first }: Bounds & { readonly limit: number; readonly first: ListOrder },
): Promise<{ readonly members: readonly string[]; readonly isLast: boolean }> {
  const share = Math.max(1, Math.ceil(limit / PAGE_SHARE));
  const keysOf = (shard: Shard) => names.map((name) => shard.keyOf(name));
  const answers = await groups.runAll(MEMBERS_SCRIPT, keysOf, [least, greatest, share, first]);
  const lists = answers.flat() as readonly (readonly string[])[];
  const isLater = (a: string, b: string): boolean => (first === "oldest" ? a > b : a < b);
  /** After this member, a list that returned its whole share may have more. */
  let lastCertain: string | null = null;
  for (const list of lists) {
    const last = list.length < share ? undefined : list.at(-1);
    if (last !== undefined && (lastCertain === null || isLater(lastCertain, last))) lastCertain = last;
  }
  const all = lists.flat().sort((a, b) => (isLater(a, b) ? 1 : -1));
  const members = all
    .filter((member) => lastCertain === null || !isLater(member, lastCertain))
    .slice(0, limit);
  return { members, isLast: lastCertain === null && members.length === all.length };
}

/** True if an event matches the filter. Its record decides, because it may have changed after it was listed. */
function fitsFilter(filter: EventFilter, eventId: string, { record }: VersionedRecord): boolean {
  if (isUnreadable(record)) return true;
  const event = indexOf(recordKeyOf(eventId), record).events.find((labels) => labels.eventId === eventId);
  return event !== undefined && matchesFilter(event, filter);
}
