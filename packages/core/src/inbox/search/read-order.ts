import { isNotSearchable } from "../../protocol/errors.ts";
import type { ListPage, RecordStore } from "../contract/store.ts";
import type { SubjectEvent, SubjectOrder } from "../contract/subject-order.ts";
import { readableRecord } from "../record/codec.ts";
import { eventIn } from "../record/decisions.ts";
import { isEventId, recordKeyOf, slotKeyOf } from "../record/event.ts";
import { labelOf } from "../record/label.ts";
import { type IdempotencyRecord, referenceOf } from "../record/record.ts";
import { contentOf } from "../record/side-record.ts";

const MAX_OTHER_EVENTS = 20;
/** How many events of the same reference are read. Most references have one subject, and few events. */
const MAX_LISTED_EVENTS = 200;

/** Reads the order of an event's subject. Null if there is no such event, or if it has no subject. */
export async function readSubjectOrder(
  store: Pick<RecordStore, "list" | "read">,
  eventId: string,
): Promise<SubjectOrder | null> {
  if (!isEventId(eventId)) return null;
  const read = async (keys: readonly string[]): Promise<readonly (IdempotencyRecord | null)[]> =>
    (await store.read(keys)).map(readableRecord);
  const [record = null] = await read([recordKeyOf(eventId)]);
  const slot = record?.slots[slotKeyOf(eventId)];
  if (record === null || slot?.subject === undefined) return null;
  const { key: subjectKey } = slot.subject;
  const [subjectRecord = null] = await read([subjectKey]);
  const eventById = new Map<string, SubjectEvent>();
  const add = (eventRecord: IdempotencyRecord, id: string): void => {
    const event = subjectEventOf(eventRecord, id, subjectKey, subjectRecord?.id === id);
    if (event !== null) eventById.set(id, event);
  };
  const { events, isAll } = await listRelatedEvents(store, record, referenceOf(record, slot));
  for (const { eventId: id, versioned } of events) {
    const listedRecord = readableRecord(versioned);
    if (listedRecord !== null) add(listedRecord, id);
  }
  add(record, eventId);
  // The subject's record names the latest event, and those that have begun and not ended. The lists may lack
  // these.
  const subjectEventIds =
    subjectRecord === null ? [] : [subjectRecord.id, ...Object.keys(contentOf(subjectRecord))];
  const unlisted = [...new Set(subjectEventIds)].filter((id) => isEventId(id) && !eventById.has(id));
  const records = await read(unlisted.map(recordKeyOf));
  for (const [index, id] of unlisted.entries()) {
    const unlistedRecord = records[index] ?? null;
    if (unlistedRecord !== null) add(unlistedRecord, id);
  }
  const inOrder = [...eventById.values()].sort(
    (a, b) => a.signedAt - b.signedAt || a.acceptedAt - b.acceptedAt,
  );
  const latestOthers = inOrder.filter((event) => event.eventId !== eventId).slice(-MAX_OTHER_EVENTS);
  const shownEvents = inOrder.filter((event) => event.eventId === eventId || latestOthers.includes(event));
  return { events: shownEvents, complete: isAll && shownEvents.length === inOrder.length };
}

function subjectEventOf(
  record: IdempotencyRecord,
  eventId: string,
  subjectKey: string,
  isLatest: boolean,
): SubjectEvent | null {
  const subject = record.slots[slotKeyOf(eventId)]?.subject;
  const storedEvent = eventIn(record, eventId);
  if (storedEvent === null || subject?.key !== subjectKey) return null;
  const { event, status, amount, state, reason, acceptedAt } = storedEvent;
  return { eventId, event, status, amount, state, reason, acceptedAt, signedAt: subject.at, isLatest };
}

interface RelatedEvents {
  readonly events: ListPage["events"];
  /** True if all of them were listed. */
  readonly isAll: boolean;
}

/**
 * The events of the same reference. Most often, all events of the subject are among them. An erased event has
 * no reference.
 */
async function listRelatedEvents(
  store: Pick<RecordStore, "list">,
  { flow, tenant }: IdempotencyRecord,
  referenceId: string | null,
): Promise<RelatedEvents> {
  if (referenceId === null) return { events: [], isAll: false };
  const filter = { flow, tenant: labelOf(tenant), referenceId };
  try {
    const { events, next } = await store.list({ ...filter, state: "any" }, null, MAX_LISTED_EVENTS, "newest");
    return { events, isAll: next === null };
  } catch (error) {
    if (!isNotSearchable(error)) throw error;
    return { events: (await store.list(filter, null, MAX_LISTED_EVENTS, "newest")).events, isAll: false };
  }
}
