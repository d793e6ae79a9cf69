import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { SlotState } from "./event.ts";
import type { IdempotencyRecord, Slot } from "./record.ts";

/*
 * A packed record has one line per field: the fields of the record, its facts as name and value, then eight fields per slot. A
 * value that nearly every record has is written as a sign, which is `\` and a letter, or as nothing at all.
 */

const SIGNS: readonly (readonly [text: string, sign: string])[] = [
  ["", "\\0"],
  ["event", "\\e"],
  ["referenceId", "\\r"],
  ["merchantId", "\\m"],
  ["object", "\\o"],
  ["id", "\\i"],
  ["status", "\\s"],
  ["DEPOSIT", "\\D"],
  ["WITHDRAWAL", "\\W"],
  ["SUCCESS", "\\S"],
  ["FAILED", "\\F"],
  ["settlement", "\\t"],
  ["settlement.approved", "\\A"],
  ["settlement.declined", "\\B"],
  ["connected_account", "\\c"],
  ["connected_account.approved", "\\G"],
  ["connected_account.declined", "\\H"],
  ["approved", "\\a"],
  ["declined", "\\d"],
];
const signOf: ReadonlyMap<string, string> = new Map(SIGNS);
const textOf: ReadonlyMap<string, string> = new Map(SIGNS.map(([text, sign]) => [sign, text]));

const NULL = "\\n";
/** The rest of the field is a text as JSON. */
const JSON_SIGN = "\\j";
const FLOWS = ["payments", "connect"] as const;
const STATES: readonly SlotState[] = ["done", "stale", "discarded", "held", "waiting", "running"];
const VERDICTS: readonly ("run" | HeldReason)[] = [
  "run",
  "ambiguous",
  "malformed",
  "unexpected",
  "unrecognized",
  "conflict",
  "mismatch",
  "reference-reused",
  "exhausted",
  "rejected",
  "crashed",
  "unhandled",
];

const RECORD_FIELDS = 9;
/** The position of `signedAt` among them. */
const SIGNED_AT = 3;
const SLOT_FIELDS = 8;

/**
 * Writes a finished record as one short string. Nothing in it runs, waits or is held, so only what recognises copies has to be
 * kept.
 */
export function pack(record: IdempotencyRecord): string {
  const facts = Object.keys(record.identity);
  const fields = [
    String(FLOWS.indexOf(record.flow)),
    writeText(record.tenant),
    writeText(record.id),
    writeSignedAt(record.signedAt),
    writeExpiresAt(record.expiresAt),
    record.status === null ? NULL : writeText(record.status),
    record.statusSlot ?? NULL,
    record.terminal ? "1" : "0",
    writeNumber(facts.length),
  ];
  for (const fact of facts) fields.push(writeText(fact), writeText(record.identity[fact] ?? ""));
  for (const key in record.slots) {
    const slot = record.slots[key];
    if (slot !== undefined) writeSlot(fields, record, key, slot);
  }
  return fields.join("\n");
}

function writeSlot(
  fields: string[],
  { statusSlot, identity, status }: IdempotencyRecord,
  key: string,
  slot: Slot,
): void {
  fields.push(
    key === statusSlot ? "" : key,
    slot.name === identity.event ? "" : writeText(slot.name),
    slot.status === status ? "" : writeText(slot.status),
    writeAmounts(slot.amounts),
    writeState(slot),
    writeNumber(slot.acceptedAt),
    slot.token ?? "",
    slot.past === undefined ? "" : writeText(JSON.stringify(slot.past)),
  );
}

/** If there is only an amount from a callback, it is written as digits. Anything else is written as JSON. */
function writeAmounts(amounts: Slot["amounts"]): string {
  let usual: string | undefined;
  for (const source in amounts) {
    if (source !== "callback" || amounts[source] === "") return writeText(JSON.stringify(amounts));
    usual = amounts[source];
  }
  return usual ?? "";
}

function readAmounts(field: string): Slot["amounts"] {
  if (field === "") return {};
  const text = readText(field);
  return text.startsWith("{") ? (JSON.parse(text) as Slot["amounts"]) : { callback: text };
}

/** Nearly all slots are done, had the verdict `run` and were never replayed: that is written as nothing. */
function writeState({ state, verdict, replays, decision }: Slot): string {
  if (state === "done" && verdict === "run" && replays === 0) return "";
  const numbers = [STATES.indexOf(state), VERDICTS.indexOf(verdict), replays];
  return (decision === undefined ? numbers : [...numbers, decision]).join(" ");
}

function readState(field: string): Pick<Slot, "state" | "verdict" | "replays" | "decision"> {
  const [state = 0, verdict = 0, replays = 0, decision] = field === "" ? [] : field.split(" ");
  return {
    state: STATES[Number(state)] ?? "done",
    verdict: VERDICTS[Number(verdict)] ?? "run",
    replays: Number(replays),
    ...(decision === undefined ? {} : { decision }),
  };
}

/** When a packed record's event was signed. Nothing else is unpacked. */
export function signedAtOf(packed: string): number {
  let start = 0;
  for (let field = 0; field < SIGNED_AT; field++) start = packed.indexOf("\n", start) + 1;
  return readNumber(packed.slice(start, packed.indexOf("\n", start)));
}

/** The reverse of {@link pack}. */
export function unpack(packed: string): IdempotencyRecord {
  const fields = packed.split("\n");
  const field = (index: number): string => fields[index] ?? "";
  const status = field(5) === NULL ? null : readText(field(5));
  const statusSlot = field(6) === NULL ? null : field(6);
  const identity: Record<string, string> = {};
  let at = RECORD_FIELDS;
  for (let facts = readNumber(field(8)); facts > 0; facts--, at += 2) {
    identity[readText(field(at))] = readText(field(at + 1));
  }
  const slots: Record<string, Slot> = {};
  for (; at < fields.length; at += SLOT_FIELDS) {
    slots[field(at) || (statusSlot ?? "")] = {
      name: field(at + 1) === "" ? (identity.event ?? "") : readText(field(at + 1)),
      status: field(at + 2) === "" ? (status ?? "") : readText(field(at + 2)),
      amounts: readAmounts(field(at + 3)),
      ...readState(field(at + 4)),
      told: false,
      acceptedAt: readNumber(field(at + 5)),
      token: field(at + 6) || null,
      work: null,
      ...(field(at + 7) === "" ? {} : { past: JSON.parse(readText(field(at + 7))) }),
    };
  }
  return {
    flow: FLOWS[Number(field(0))] ?? "payments",
    tenant: readText(field(1)),
    id: readText(field(2)),
    status,
    statusSlot,
    terminal: field(7) === "1",
    identity,
    lease: null,
    slots,
    signedAt: readNumber(field(SIGNED_AT)),
    expiresAt: readNumber(field(4)),
  };
}

/** Characters that no database accepts in a text. */
const UNFIT = /\0|\p{Surrogate}/u;

/** A text without line ends, as it is written in a packed record. */
export function writeText(text: string): string {
  const sign = signOf.get(text);
  if (sign !== undefined) return sign;
  if (UNFIT.test(text)) return JSON_SIGN + JSON.stringify(text);
  if (!text.includes("\\") && !text.includes("\n")) return text;
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\/");
}

function readText(field: string): string {
  if (!field.includes("\\")) return field;
  if (field.startsWith(JSON_SIGN)) return JSON.parse(field.slice(JSON_SIGN.length)) as string;
  return textOf.get(field) ?? field.replace(/\\(.)/g, (_, sign: string) => (sign === "/" ? "\n" : sign));
}

function writeNumber(value: number): string {
  return Number.isSafeInteger(value) ? value.toString(36) : `\\${value}`;
}

/** All pairs of digits. */
const PAIRS: readonly string[] = Array.from({ length: 36 * 36 }, (_, pair) =>
  pair.toString(36).padStart(2, "0"),
);
const FOUR_DIGITS = PAIRS.length ** 2;

/**
 * Writes the times of one field as {@link writeNumber} does, but faster. JavaScript engines take long to write the digits of
 * large numbers. For half an hour, all digits but the last four are the same as in the time before, so these are kept.
 */
function timeWriter(): (ms: number) => string {
  let upper = 0;
  let upperDigits = "";
  return (ms) => {
    if (!Number.isSafeInteger(ms) || ms < FOUR_DIGITS) return writeNumber(ms);
    const lower = ms % FOUR_DIGITS;
    const rest = (ms - lower) / FOUR_DIGITS;
    if (rest !== upper) {
      upper = rest;
      upperDigits = rest.toString(36);
    }
    return `${upperDigits}${PAIRS[Math.floor(lower / PAIRS.length)]}${PAIRS[lower % PAIRS.length]}`;
  };
}

const writeSignedAt = timeWriter();
const writeExpiresAt = timeWriter();

function readNumber(field: string): number {
  return field.startsWith("\\") ? Number(field.slice(1)) : Number.parseInt(field, 36);
}
