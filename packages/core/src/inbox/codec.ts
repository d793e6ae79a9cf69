import { digested } from "./digest.ts";
import type { StoredDelivery } from "./inbox.ts";
import { pack, unpack } from "./pack.ts";
import { type IdempotencyRecord, isFinished, type Slot } from "./record.ts";

/** A record as text: packed when it is finished, JSON with raw bodies in base64 while there is work in it. */
export function encodeRecord(record: IdempotencyRecord): string {
  if (isFinished(record)) return `f${shorten(pack({ ...record, identity: digested(record.identity) }))}`;
  const slots: Record<string, unknown> = {};
  for (const [key, slot] of Object.entries(record.slots)) {
    const { work } = slot;
    const delivery = work === null ? null : { ...work.delivery, rawBody: base64Of(work.delivery) };
    slots[key] = work === null ? slot : { ...slot, work: { ...work, delivery } };
  }
  return `o${JSON.stringify({ ...record, slots })}`;
}

/** The reverse of {@link encodeRecord}, but for long facts of a finished record, which are digests from then on. */
export function decodeRecord(text: string): IdempotencyRecord {
  if (text.startsWith("f")) return unpack(lengthen(text.slice(1)));
  const record = JSON.parse(text.slice(1)) as IdempotencyRecord;
  for (const [key, slot] of Object.entries(record.slots)) {
    const { work } = slot;
    if (work === null) continue;
    // In the text, rawBody is base64.
    const rawBody = Buffer.from(work.delivery.rawBody as unknown as string, "base64");
    record.slots[key] = { ...slot, work: { ...work, delivery: { ...work.delivery, rawBody } } };
  }
  return record;
}

/** A copy whose steps do not show in the original. What a step never changes is shared. */
export function copyRecord(record: IdempotencyRecord): IdempotencyRecord {
  const slots: Record<string, Slot> = {};
  for (const [key, slot] of Object.entries(record.slots)) {
    const { work } = slot;
    slots[key] = {
      ...slot,
      work: work === null ? null : { ...work, steps: { ...work.steps }, history: [...work.history] },
    };
  }
  return { ...record, lease: record.lease === null ? null : { ...record.lease }, slots };
}

const encoded = new WeakMap<Uint8Array, string>();

/** A record is written some seven times, with the same body. */
function base64Of({ rawBody }: StoredDelivery): string {
  let text = encoded.get(rawBody);
  if (text === undefined) {
    text = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength).toString("base64");
    encoded.set(rawBody, text);
  }
  return text;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const SLOT = /^[0-9a-f]{16}$/gm;

/** Writes hex digits in base64, where there are many. A `~` of the text itself is doubled, so that nothing is mistaken. */
function shorten(text: string): string {
  return text
    .replaceAll("~", "~~")
    .replace(UUID, (uuid) => `~u${Buffer.from(uuid.replaceAll("-", ""), "hex").toString("base64url")}`)
    .replace(SLOT, (slot) => `~s${Buffer.from(slot, "hex").toString("base64url")}`);
}

const SIGN = /~(?:u([\w-]{22})|s([\w-]{11})|~)/g;

function lengthen(short: string): string {
  return short.replace(SIGN, (_, uuid?: string, slot?: string) => {
    if (slot !== undefined) return Buffer.from(slot, "base64url").toString("hex");
    if (uuid === undefined) return "~";
    const hex = Buffer.from(uuid, "base64url").toString("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  });
}
