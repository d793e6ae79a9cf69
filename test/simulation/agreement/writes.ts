import type { Swap } from "../../../packages/core/src/inbox/contract/store.ts";
import { indexOf } from "../../../packages/core/src/inbox/record/index-of.ts";
import type { IdempotencyRecord } from "../../../packages/core/src/inbox/record/record.ts";
import type { RunOutcome } from "../../../packages/core/src/inbox/record/run-outcome.ts";
import {
  acceptedRecord,
  begunRecord,
  decidedRecord,
  endedRecord,
  referenceRecord,
  type Sample,
} from "../../../packages/core/src/testing/store/records.ts";
import type { AgreedState, RecordVersion } from "./agreed-state.ts";
import type { Change, Fault, Item, TextKind } from "./history.ts";

type AcceptChange = Extract<Change, { readonly kind: "accept" }>;
type NextRecord = Pick<RecordVersion, "record" | "unleased">;

const LONG = 20_000;
/** Longer than some servers accept. */
const HUGE = 1_200_000;

const TEXTS: Readonly<Record<TextKind, string>> = {
  plain: "",
  other: "other",
  nul: "nul \0 here",
  half: "half \ud800 a character",
  quotes: "'; DROP TABLE records; -- {tag}\n:*?[a]",
  cut: "é".repeat(200),
  long: "é".repeat(LONG),
};

function sampleOf({ status, held, delayMs, retentionMs, text }: AcceptChange): Sample {
  const common = { status, delayMs, retentionMs, ...(held === null ? {} : { held }) };
  const odd = TEXTS[text];
  if (odd === "") return common;
  const content = Buffer.from(text === "quotes" ? "\n\0\r\n'\"\\" : JSON.stringify({ referenceId: odd }));
  const texts = { tenant: text === "other" ? "a" : odd, name: odd, id: odd, referenceId: odd };
  return { ...common, ...texts, content, signature: odd };
}

/** One write, which every store gets, and the version after it. */
export interface Write {
  readonly swap: Swap;
  readonly known: RecordVersion;
  readonly isUnfit: boolean;
}

export function writeOf(item: Item, agreed: AgreedState, version: string, now: number, key: string): Write {
  const { change, fault } = item;
  const current = agreed.current(key, now);
  const { record, unleased } = changed(change, key, current, now);
  let index = indexOf(key, record);
  if (change.kind === "wrong-clock" && index.dueAt !== null) {
    index = { ...index, dueAt: now + change.aheadMs + 1_000, originalDelayMs: 1_000 };
  }
  const known = { key, version, record, unleased, index };
  const base = baseOf(fault, agreed, key, current);
  const swap: Swap = {
    key,
    expected: base?.version ?? null,
    version,
    record,
    index,
    before: base?.index ?? null,
    at: now - (fault.lateMs ?? 0),
    shouldAnnounce: false,
  };
  const isUnfit = fault.unfit !== undefined && index.events.length > 0;
  return { swap: isUnfit ? unfit(swap, fault.unfit) : swap, known, isUnfit };
}

/** The version from which the write is computed, according to its fault. */
function baseOf(
  fault: Fault,
  agreed: AgreedState,
  key: string,
  current: RecordVersion | null,
): RecordVersion | null {
  switch (fault.expected) {
    case "none":
      return null;
    case "earlier":
      return agreed.earlier(key) ?? current;
    case "last":
      return agreed.last(key);
    case "unknown":
      return current === null ? null : { ...current, version: "nobodyknows00" };
    default:
      return current;
  }
}

/** The write with invalid labels, or with more text than a store may accept. */
function unfit(swap: Swap, kind: "nul" | "long" | "huge" | undefined): Swap {
  if (kind === "huge") return { ...swap, record: { ...swap.record, tenant: "x".repeat(HUGE) } };
  // No filter of a history uses the status, so a store may keep an invalid one.
  const status = kind === "nul" ? "a \0 label" : "é".repeat(LONG);
  return {
    ...swap,
    index: { ...swap.index, events: swap.index.events.map((event) => ({ ...event, status })) },
  };
}

function changed(change: Change, key: string, current: RecordVersion | null, now: number): NextRecord {
  const withoutLease = (record: IdempotencyRecord): NextRecord => ({ record, unleased: record });
  const before = current?.unleased ?? null;
  switch (change.kind) {
    case "accept": {
      const made = acceptedIn(change, key, before, now);
      if (made !== null)
        return withoutLease(change.ended && mayRun(made, now) ? endedRecord(key, now, made) : made);
      break;
    }
    case "claim":
      if (before === null || Object.keys(before.slots).length === 0) {
        return withoutLease(referenceRecord(`owner-${now}`, now, change.lifetimeMs));
      }
      break;
    case "decide":
      if (before !== null && Object.values(before.slots).some(({ state }) => state === "held")) {
        return withoutLease(decidedRecord(key, now, before, change.decision));
      }
      break;
    case "begin":
      if (before !== null && mayRun(before, now)) {
        return { record: begunRecord(key, now, before, change.leaseMs), unleased: before };
      }
      break;
    case "end":
      if (before !== null && mayRun(before, now))
        return withoutLease(endedRecord(key, now, before, outcomeOf(change)));
      break;
    default:
  }
  if (current !== null) return { record: { ...current.record, signedAt: now }, unleased: current.unleased };
  return withoutLease(acceptedRecord(key, now));
}

function acceptedIn(
  change: AcceptChange,
  key: string,
  before: IdempotencyRecord | null,
  now: number,
): IdempotencyRecord | null {
  const slots = Object.values(before?.slots ?? {});
  // A record has at most one event of each status. The record of a reference has none.
  if (slots.some(({ status }) => status === change.status)) return null;
  if (before !== null && slots.length === 0) return null;
  // A PENDING after the terminal status changes nothing.
  if (before?.isClosed === true && change.status === "PENDING") return null;
  return acceptedRecord(key, now - change.agoMs, sampleOf(change), before);
}

function mayRun({ slots }: IdempotencyRecord, now: number): boolean {
  return Object.values(slots).some(({ state, work }) => state === "waiting" && (work?.dueAt ?? 0) <= now);
}

function outcomeOf({ how, delayMs }: Extract<Change, { readonly kind: "end" }>): RunOutcome {
  switch (how) {
    case "held":
      return { kind: "held", reason: "rejected", detail: null, onHeld: delayMs === 0 ? ["held:held"] : [] };
    case "retry":
      return { kind: "retry", delayMs };
    default:
      return { kind: how };
  }
}
