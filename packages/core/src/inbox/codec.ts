import { isUtf8 } from "node:buffer";
import { digested } from "./digest.ts";
import type { StoredDelivery } from "./inbox.ts";
import { pack, unpack } from "./pack.ts";
import { type IdempotencyRecord, isFinished, type Slot } from "./record.ts";

/** A record as text, in two parts: what its steps change, and behind that what stays as it came. */
export interface EncodedRecord {
  readonly head: string;
  /** Two lines for the delivery of each slot that has work, each with its line end before it; empty when none has. */
  readonly tail: string;
}

/** Packed when it is finished, JSON while there is work in it. */
export function encodeRecord(record: IdempotencyRecord): EncodedRecord {
  if (isFinished(record)) {
    return { head: `f${shorten(pack({ ...record, identity: digested(record.identity) }))}`, tail: "" };
  }
  const slots: Record<string, unknown> = {};
  let tail = "";
  for (const key in record.slots) {
    const slot = record.slots[key];
    if (slot?.work == null) slots[key] = slot;
    else {
      slots[key] = { ...slot, work: { ...slot.work, delivery: undefined } };
      tail += linesOf(slot.work.delivery);
    }
  }
  return { head: `o${JSON.stringify({ ...record, slots })}`, tail };
}

/** The parts of a record that was stored as one text. */
export function partsOf(text: string): EncodedRecord {
  const end = text.startsWith("o") ? text.indexOf("\n") : -1;
  return end < 0 ? { head: text, tail: "" } : { head: text.slice(0, end), tail: text.slice(end) };
}

/** The reverse of {@link encodeRecord}, but for long facts of a finished record, which are digests from then on. */
export function decodeRecord({ head, tail }: EncodedRecord): IdempotencyRecord {
  if (head.startsWith("f")) return unpack(lengthen(head.slice(1)));
  const record = JSON.parse(head.slice(1)) as IdempotencyRecord;
  const lines = tail.split("\n");
  let at = 1;
  for (const key in record.slots) {
    const slot = record.slots[key];
    if (slot?.work == null) continue;
    const delivery = deliveryOf(lines[at] ?? "", lines[at + 1] ?? "");
    record.slots[key] = { ...slot, work: { ...slot.work, delivery } };
    at += 2;
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

const LINE_END = 10;
const written = new WeakMap<StoredDelivery, string>();

/** A delivery without its body, which is on the next line: as it reads, or in base64 where it is no line of UTF-8. */
type Envelope = Omit<StoredDelivery, "rawBody"> & { readonly base64?: true };

/** A record is written some seven times, with the same delivery. */
function linesOf(delivery: StoredDelivery): string {
  let lines = written.get(delivery);
  if (lines === undefined) {
    const { rawBody, ...rest } = delivery;
    const bytes = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
    const readable = isUtf8(bytes) && !bytes.includes(LINE_END);
    const envelope: Envelope = readable ? rest : { ...rest, base64: true };
    lines = `\n${JSON.stringify(envelope)}\n${bytes.toString(readable ? "utf8" : "base64")}`;
    written.set(delivery, lines);
  }
  return lines;
}

function deliveryOf(envelope: string, body: string): StoredDelivery {
  const { base64, ...rest } = JSON.parse(envelope) as Envelope;
  const delivery = { ...rest, rawBody: Buffer.from(body, base64 ? "base64" : "utf8") };
  written.set(delivery, `\n${envelope}\n${body}`);
  return delivery;
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
