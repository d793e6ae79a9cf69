import { isNotSearchable } from "../protocol/errors.ts";
import { isUnreadable } from "./record/codec.ts";
import { eventIn } from "./record/decisions.ts";
import { isEventId, recordKeyOf, slotKeyOf } from "./record/event.ts";
import { label } from "./record/label.ts";
import type { StoredEvent } from "./record/life.ts";
import { type IdempotencyRecord, referenceOf } from "./record/record.ts";
import type { Listed, RecordStore } from "./store.ts";

/** An event of a subject, among the others of the same subject. */
export interface SubjectWord
  extends Pick<StoredEvent, "eventId" | "event" | "status" | "amount" | "state" | "reason" | "acceptedAt"> {
  /** When it was signed, by its own words, in milliseconds since the epoch. The events of a subject are ordered by it. */
  readonly signedAt: number;
  /** True for the latest event that has begun to run. No earlier one begins any more. */
  readonly isLatest: boolean;
}

/** The events of one subject (docs/concepts/order.md). */
export interface SubjectOrder {
  /** In the order of their signed times: the event that was asked about, and at most 20 others, the latest ones. */
  readonly words: readonly SubjectWord[];
  /** False if there may be more: there are more than 20 others, or the inbox keeps no list of finished events. */
  readonly isWhole: boolean;
}

const MAX_OTHERS = 20;
/** How many events of the same reference are read. Most references have one subject, and few events. */
const MAX_READ = 200;

type Read = (keys: readonly string[]) => Promise<readonly (IdempotencyRecord | null)[]>;

/** Reads the order of an event's subject. Null if there is no such event, or if it has no subject. */
export async function orderOf(
  store: Pick<RecordStore, "list">,
  read: Read,
  eventId: string,
): Promise<SubjectOrder | null> {
  if (!isEventId(eventId)) return null;
  const [record = null] = await read([recordKeyOf(eventId)]);
  const slot = record?.slots[slotKeyOf(eventId)];
  if (record === null || slot?.subject === undefined) return null;
  const { key } = slot.subject;
  const [subject = null] = await read([key]);
  const words = new Map<string, SubjectWord>();
  const add = (of: IdempotencyRecord, one: string): void => {
    const word = wordOf(of, one, key, subject?.id === one);
    if (word !== null) words.set(one, word);
  };
  const { events, isAll } = await related(store, record, referenceOf(record, slot));
  for (const { eventId: one, versioned } of events) {
    if (!isUnreadable(versioned.record)) add(versioned.record, one);
  }
  add(record, eventId);
  // The subject itself knows the latest word and those that have not ended, where no list has them.
  const known = subject === null ? [] : [subject.id, ...Object.keys(subject.identity)];
  const unlisted = [...new Set(known)].filter((one) => isEventId(one) && !words.has(one));
  const records = await read(unlisted.map(recordKeyOf));
  for (const [at, one] of unlisted.entries()) {
    const found = records[at] ?? null;
    if (found !== null) add(found, one);
  }
  const inOrder = [...words.values()].sort((a, b) => a.signedAt - b.signedAt || a.acceptedAt - b.acceptedAt);
  const shown = inOrder.filter(
    (word, at) => word.eventId === eventId || at >= inOrder.length - MAX_OTHERS - 1,
  );
  return { words: shown, isWhole: isAll && shown.length === inOrder.length };
}

function wordOf(
  record: IdempotencyRecord,
  eventId: string,
  subjectKey: string,
  isLatest: boolean,
): SubjectWord | null {
  const subject = record.slots[slotKeyOf(eventId)]?.subject;
  const stored = eventIn(record, eventId);
  if (stored === null || subject?.key !== subjectKey) return null;
  const { event, status, amount, state, reason, acceptedAt } = stored;
  return { eventId, event, status, amount, state, reason, acceptedAt, signedAt: subject.at, isLatest };
}

interface Related {
  readonly events: Listed["events"];
  /** All of them were listed. */
  readonly isAll: boolean;
}

/** The events of the same reference, which those of the same subject are among. An erased event has none. */
async function related(
  store: Pick<RecordStore, "list">,
  { flow, tenant }: IdempotencyRecord,
  referenceId: string | null,
): Promise<Related> {
  if (referenceId === null) return { events: [], isAll: false };
  const filter = { flow, tenant: label(tenant), referenceId };
  try {
    const { events, next } = await store.list({ ...filter, state: "any" }, null, MAX_READ, "newest");
    return { events, isAll: next === null };
  } catch (error) {
    if (!isNotSearchable(error)) throw error;
    return { events: (await store.list(filter, null, MAX_READ, "newest")).events, isAll: false };
  }
}

/** An event of a subject, and what its place in the order means for it. */
export interface ExplainedWord extends SubjectWord {
  /** A sentence without any value of a delivery but signed times. */
  readonly text: string;
}

/** Says of each event of a subject which one it waits for, and which has overtaken it. */
export function explainOrder({ words }: SubjectOrder): readonly ExplainedWord[] {
  return words.map((word) => ({ ...word, text: placeOf(word, words) }));
}

function placeOf(word: SubjectWord, words: readonly SubjectWord[]): string {
  const { state, isLatest, signedAt } = word;
  const later = words.find((one) => one.signedAt > signedAt && hasBegun(one));
  const running = words.find((one) => one.isLatest && one.state === "running" && one !== word);
  if (state === "stale") {
    return later === undefined
      ? "A later event has overtaken it, which is not known any more."
      : `The event signed at ${timeOf(later)} has overtaken it.`;
  }
  if (state === "discarded") return "A person has discarded it.";
  if (state === "done") {
    if (later !== undefined) return `It has run. The event signed at ${timeOf(later)} has replaced it.`;
    return isLatest ? "It has run, and is the last word." : "It has run.";
  }
  if (later !== undefined) {
    return `It is stale when its turn comes: the event signed at ${timeOf(later)} has begun.`;
  }
  if (running !== undefined) return `It waits for the event signed at ${timeOf(running)}, which is running.`;
  const twin = words.find((one) => one !== word && one.signedAt === signedAt);
  if (state === "held") {
    return twin === undefined
      ? "It is held, until a person decides or a later event overtakes it."
      : `It is held: another event was signed at ${timeOf(twin)}, too, and nobody can say which is the last word.`;
  }
  if (state === "running") return "It is running. Other events of its subject wait for it.";
  return isLatest
    ? "It has begun, so no earlier event runs any more, and it is tried again."
    : "It waits for its run, and a later event that begins before overtakes it.";
}

function hasBegun({ isLatest, state }: SubjectWord): boolean {
  return isLatest || state === "running" || state === "retrying" || state === "done";
}

function timeOf({ signedAt }: SubjectWord): string {
  return new Date(signedAt).toISOString();
}
