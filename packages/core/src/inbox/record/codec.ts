import { isUtf8 } from "node:buffer";
import { describeError } from "../../protocol/foreign-error.ts";
import type { JsonValue } from "../../protocol/json.ts";
import { digested } from "./digest.ts";
import type { StoredDelivery } from "./event.ts";
import { pack, unpack } from "./pack.ts";
import { type IdempotencyRecord, isFinished, type Slot, type Work } from "./record.ts";

/** The format in which texts are written. Earlier formats can be read too. */
const FORMAT = "1";

/** A record that this version of Payhooks cannot read, and why. Such a record is left alone. */
export interface Unreadable {
  readonly unreadable: string;
}

/** Whether a record could be read. */
export function isUnreadable(record: IdempotencyRecord | Unreadable): record is Unreadable {
  return "unreadable" in record;
}

/**
 * Writes a record as text. The text begins with the format. `f` follows for a finished record, which is packed. `o` follows for
 * a record with work in it: JSON arrays in which positions stand for names, and then two lines for the delivery of each slot
 * that has work.
 */
export function encodeRecord(record: IdempotencyRecord): string {
  if (isFinished(record)) {
    return `${FORMAT}f${shorten(pack({ ...record, identity: digested(record.identity) }))}`;
  }
  const values = valuesOf(record, RECORD_FIELDS);
  let lines = "";
  for (const key in record.slots) {
    const slot = record.slots[key];
    if (slot === undefined) continue;
    const { work } = slot;
    values.push(key, valuesOf(slot, SLOT_FIELDS), work === null ? null : valuesOf(work, WORK_FIELDS));
    if (work !== null) lines += linesOf(work.delivery);
  }
  return `${FORMAT}o${JSON.stringify(values)}${lines}`;
}

/** The reverse of {@link encodeRecord}, except that long facts of a finished record become digests. */
export function decodeRecord(text: string): IdempotencyRecord | Unreadable {
  if (!text.startsWith(FORMAT)) {
    return { unreadable: `its format is ${JSON.stringify(text.slice(0, 1))}: a newer Payhooks wrote it` };
  }
  try {
    return text[1] === "f" ? unpack(lengthen(text.slice(2))) : decodeOpen(text);
  } catch (error) {
    return { unreadable: `its text is damaged: ${describeError(error)}` };
  }
}

function decodeOpen(text: string): IdempotencyRecord {
  const lines = text.split("\n");
  const values = JSON.parse((lines[0] ?? "").slice(2)) as readonly Value[];
  let line = 1;
  const slots: Record<string, Slot> = {};
  for (let at = RECORD_FIELDS.length; at < values.length; at += 3) {
    const [key, slot, work] = values.slice(at) as [string, readonly Value[], readonly Value[] | null];
    slots[key] = { ...objectOf<Slot>(SLOT_FIELDS, slot), work: null };
    if (work === null) continue;
    const delivery = deliveryOf(lines[line++] ?? "", lines[line++] ?? "");
    slots[key].work = { ...objectOf<Work>(WORK_FIELDS, work), delivery };
  }
  return { ...objectOf<IdempotencyRecord>(RECORD_FIELDS, values), slots };
}

/** The fields of each part, in the order in which they are written. Optional ones come last. */
const RECORD_FIELDS = [
  "flow",
  "tenant",
  "id",
  "status",
  "statusSlot",
  "terminal",
  "identity",
  "lease",
  "signedAt",
  "expiresAt",
] as const satisfies readonly (keyof IdempotencyRecord)[];
const SLOT_FIELDS = [
  "name",
  "status",
  "amounts",
  "verdict",
  "state",
  "told",
  "replays",
  "acceptedAt",
  "token",
  "past",
  "decision",
] as const satisfies readonly (keyof Slot)[];
const WORK_FIELDS = [
  "retentionMs",
  "reason",
  "detail",
  "heldAt",
  "dueAt",
  "dueInMs",
  "forcedAt",
  "steps",
  "only",
  "evenIfExpired",
  "previousStatus",
  "previousAmount",
  "history",
  "again",
  "foundBy",
  "copies",
  "lastCopyAt",
  "handlers",
  "reference",
] as const satisfies readonly (keyof Work)[];
const DELIVERY_FIELDS = [
  "flow",
  "tenant",
  "source",
  "headers",
  "keyId",
  "receivedAt",
] as const satisfies readonly (keyof StoredDelivery)[];
const OPTIONAL: ReadonlySet<PropertyKey> = new Set([
  "past",
  "decision",
  "again",
  "foundBy",
  "copies",
  "lastCopyAt",
  "handlers",
  "reference",
]);

type Value = JsonValue | undefined;

function valuesOf<T>(object: T, names: readonly (keyof T)[]): unknown[] {
  return names.map((name) => object[name]);
}

function objectOf<T>(names: readonly (keyof T)[], values: readonly Value[]): T {
  const object: Partial<Record<keyof T, Value>> = {};
  names.forEach((name, at) => {
    if (values[at] !== null || !OPTIONAL.has(name)) object[name] = values[at];
  });
  return object as T;
}

/** A copy that can be changed without changing the original. What no step ever changes is shared. */
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
/** Databases refuse this byte in a text. */
const NUL = 0;
const written = new WeakMap<StoredDelivery, string>();

/**
 * A delivery's facts on one line, and its body on the next: as it is, or in base64 if it is not one line of UTF-8. The result
 * is kept, since a record is written several times with the same delivery.
 */
function linesOf(delivery: StoredDelivery): string {
  let lines = written.get(delivery);
  if (lines === undefined) {
    const { rawBody } = delivery;
    const bytes = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
    const isLine = isUtf8(bytes) && !bytes.includes(LINE_END) && !bytes.includes(NUL);
    const encoding = isLine ? "utf8" : "base64";
    const facts = JSON.stringify([encoding, ...valuesOf(delivery, DELIVERY_FIELDS)]);
    lines = `\n${facts}\n${bytes.toString(encoding)}`;
    written.set(delivery, lines);
  }
  return lines;
}

function deliveryOf(facts: string, body: string): StoredDelivery {
  const [encoding, ...values] = JSON.parse(facts) as ["utf8" | "base64", ...Value[]];
  const delivery = {
    ...objectOf<StoredDelivery>(DELIVERY_FIELDS, values),
    rawBody: Buffer.from(body, encoding),
  };
  written.set(delivery, `\n${facts}\n${body}`);
  return delivery;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const SLOT = /^[0-9a-f]{16}$/gm;

/**
 * Writes UUIDs and slot keys in base64, which is shorter. A `~` in the text itself is doubled, so that the signs stay
 * unambiguous.
 */
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
