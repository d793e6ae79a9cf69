import { isNotSearchable } from "../../protocol/errors.ts";
import type { SubjectEvent, SubjectOrder } from "../contract/order.ts";
import type { Listed, RecordStore } from "../contract/store.ts";
import { isUnreadable } from "../record/codec.ts";
import { eventIn } from "../record/decisions.ts";
import { isEventId, recordKeyOf, slotKeyOf } from "../record/event.ts";
import { label } from "../record/label.ts";
import { type IdempotencyRecord, referenceOf } from "../record/record.ts";
import { contentOf } from "../record/side-record.ts";

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
  const found = new Map<string, SubjectEvent>();
  const add = (holder: IdempotencyRecord, one: string): void => {
    const event = subjectEventOf(holder, one, key, subject?.id === one);
    if (event !== null) found.set(one, event);
  };
  const { events, isAll } = await related(store, record, referenceOf(record, slot));
  for (const { eventId: one, versioned } of events) {
    if (!isUnreadable(versioned.record)) add(versioned.record, one);
  }
  add(record, eventId);
  // The subject's record names the latest event, and those that have begun and not ended. The lists may lack
  // these.
  const known = subject === null ? [] : [subject.id, ...Object.keys(contentOf(subject))];
  const unlisted = [...new Set(known)].filter((one) => isEventId(one) && !found.has(one));
  const records = await read(unlisted.map(recordKeyOf));
  for (const [at, one] of unlisted.entries()) {
    const other = records[at] ?? null;
    if (other !== null) add(other, one);
  }
  const inOrder = [...found.values()].sort((a, b) => a.signedAt - b.signedAt || a.acceptedAt - b.acceptedAt);
  const latestOthers = inOrder.filter((event) => event.eventId !== eventId).slice(-MAX_OTHERS);
  const shown = inOrder.filter((event) => event.eventId === eventId || latestOthers.includes(event));
  return { events: shown, complete: isAll && shown.length === inOrder.length };
}

function subjectEventOf(
  record: IdempotencyRecord,
  eventId: string,
  subjectKey: string,
  isLatest: boolean,
): SubjectEvent | null {
  const subject = record.slots[slotKeyOf(eventId)]?.subject;
  const stored = eventIn(record, eventId);
  if (stored === null || subject?.key !== subjectKey) return null;
  const { event, status, amount, state, reason, acceptedAt } = stored;
  return { eventId, event, status, amount, state, reason, acceptedAt, signedAt: subject.at, isLatest };
}

interface Related {
  readonly events: Listed["events"];
  /** True if all of them were listed. */
  readonly isAll: boolean;
}

/**
 * The events of the same reference. Most often, all events of the subject are among them. An erased event has
 * no reference.
 */
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
