import type { StoredDelivery } from "./inbox.ts";
import { pack, unpack } from "./pack.ts";
import { type IdempotencyRecord, isFinished, type Slot } from "./record.ts";

/** A record as text: packed when it is finished, JSON with raw bodies in base64 while there is work in it. */
export function encodeRecord(record: IdempotencyRecord): string {
  if (isFinished(record)) return `f${pack(record)}`;
  const slots = mapSlots(record, ({ rawBody }) => Buffer.from(rawBody).toString("base64"));
  return `o${JSON.stringify({ ...record, slots })}`;
}

/** The reverse of {@link encodeRecord}. */
export function decodeRecord(text: string): IdempotencyRecord {
  if (text.startsWith("f")) return unpack(text.slice(1));
  const record = JSON.parse(text.slice(1)) as IdempotencyRecord;
  // In the text, rawBody is base64.
  const slots = mapSlots(record, ({ rawBody }) => Buffer.from(rawBody as unknown as string, "base64"));
  return { ...record, slots: slots as Record<string, Slot> };
}

function mapSlots(
  record: IdempotencyRecord,
  mapBody: (delivery: StoredDelivery) => unknown,
): Record<string, unknown> {
  const slots: Record<string, unknown> = {};
  for (const [key, slot] of Object.entries(record.slots)) {
    const { work } = slot;
    slots[key] =
      work === null
        ? slot
        : { ...slot, work: { ...work, delivery: { ...work.delivery, rawBody: mapBody(work.delivery) } } };
  }
  return slots;
}
