/**
 * The idempotency record: everything that is known about one transaction, or one webhook, of one tenant. Each of its events has a
 * slot. `docs/concepts/deduplication.md` has a picture of a slot's states, and the table that `table.ts` implements.
 *
 * A held slot is also leased while its onHeld handlers are called, and stays held meanwhile. The modules of this folder change a
 * record without I/O. The engine calls them on a copy, and then swaps the copy for the stored record.
 */
import type { FlowName } from "../../protocol/events.ts";
import { type HeldReason, isOutsideTable } from "../../protocol/held-reasons.ts";
import type { SlotState, StoredDelivery, Subject } from "./event.ts";
import type { HandlerState } from "./handler-state.ts";

/** One event of a record. */
export interface Slot {
  readonly name: string;
  readonly status: string;
  /** When it was erased. Left out if it was not. See `erase`. */
  readonly erasedAt?: number;
  /** A higher rank may follow a lower one. Null: the event has no place in the table. */
  readonly rank: number | null;
  /**
   * The merchant's reference, as a label. Null: the reference in the record's fixed facts, if there is one. See {@link
   * referenceOf}.
   */
  readonly referenceId: string | null;
  /** The amounts of the event, by their way of arrival. */
  amounts: Readonly<Record<string, string>>;
  readonly verdict: "run" | HeldReason;
  state: SlotState;
  /** True once the onHeld handlers of a held event are done, or if there are none. */
  isOnHeldDone: boolean;
  replays: number;
  /** When it was accepted, on the store's clock. */
  readonly acceptedAt: number;
  /**
   * Identifies the run that last took the slot. It is kept after the run has ended, so that the run can recognise its last
   * write.
   */
  runToken: string | null;
  /** The work of the next run. It is dropped when the event ends. */
  work: OpenWork | null;
  /** The work for another run, once the event has ended. Left out if it is not kept. */
  kept?: ReplayData;
  /** The part of the event's life that is kept after its end. Left out if nothing unusual happened. */
  past?: EndedHistory;
  /** Identifies the last decision of a person, so that a repeated write of it is recognised. */
  decisionToken?: string;
  /** The subject. `hadTurn`: a run of this event has taken the subject. Left out for an event without a subject. */
  subject?: Subject & { readonly hadTurn?: true };
}

/** The kept part of an ended event, with which it can be run again. */
export type ReplayData = Pick<OpenWork, "delivery" | "retentionMs" | "previousStatus" | "previousAmount"> & {
  readonly keepMs: number;
};

/** One line of an event's history. */
export interface HistoryEntry {
  /** The store's clock, in milliseconds since the epoch. */
  readonly at: number;
  /**
   * `accepted`, `held: REASON`, `failed` or `given up: REASON` (of an attempt), `lapsed` (the process died during a
   * run, or was silent for too long), `replay N`, `attempt brought forward`, `and more: N` (contradictions that were
   * counted and not kept), or an end: `done`, `stale` or `discarded`.
   */
  readonly what: string;
  /** The handler that was tried. */
  readonly handler?: string;
  /** The number of this handler's attempt, counted from 1. */
  readonly attempt?: number;
  /** The error that it threw, in one line of at most 200 characters. */
  readonly error?: string;
  /** The person who made the decision. */
  readonly by?: string;
  /** The note of the decision. */
  readonly note?: string;
  /** Of an end: how many effects its handlers skipped, because they had happened before. */
  readonly skipped?: number;
}

/** The kept part of the life of an event that has ended. */
export interface EndedHistory {
  /** The first line and the last ones, including the end. */
  readonly history: readonly HistoryEntry[];
  readonly copies: number;
  readonly lastCopyAt: number | null;
}

/** The part of a slot that lives until the slot is finished. */
export interface OpenWork {
  readonly delivery: StoredDelivery;
  /** How long the record is kept after the slot's end, in milliseconds. */
  readonly retentionMs: number;
  /** How long the signed text is kept after the slot's end. Left out if it is dropped then. */
  readonly keepMs?: number;
  reason: HeldReason | null;
  detail: string | null;
  heldAt: number;
  /** The event does not run before this time (the store's clock). */
  dueAt: number;
  /** How far away that time was when it was written. It shows whether the clock was wrong then. */
  originalDelayMs: number;
  /** When it was last begun early; null: never. */
  begunEarlyAt: number | null;
  /** The state of each handler, by its name. */
  handlerStates: Record<string, HandlerState>;
  /**
   * Handlers that have not been tried yet. Each was registered in a process that began the event. The event is done
   * only when these have finished, too. Left out if there is none.
   */
  untriedHandlers?: readonly string[];
  /** The handlers that the last replay named: only these run. Null: every handler that has not finished runs. */
  onlyHandlers: readonly string[] | null;
  /** The last replay said `evenIfExpired`. */
  evenIfExpired: boolean;
  /** The ids and references of each reading, if there are several. */
  readonly foundBy?: readonly string[];
  /** The last replay asked for its effects to happen again. */
  repeatEffects?: true;
  /** It waits in the patient lane. Left out if it waits in the usual one. */
  patient?: true;
  readonly previousStatus: string | null;
  readonly previousAmount: string | null;
  history: HistoryEntry[];
  /** How many copies were counted, and when the last of them came. Left out if there was none. */
  copies?: number;
  lastCopyAt?: number;
  /** The kept text of the instrumentation of the process that accepted it. Left out if it has none. */
  readonly trace?: string;
}

/** The lease under which one slot of a record runs. */
export interface RecordLease {
  readonly slot: string;
  readonly token: string;
  until: number;
  /** How far away the end was when it was written. */
  originalLengthMs: number;
}

/**
 * One transaction, or one webhook, of one tenant; or a [side record](side-record.ts), in which some fields mean something else.
 */
export interface IdempotencyRecord {
  readonly flow: FlowName;
  readonly tenant: string;
  /** Empty once every event of the record is erased. */
  id: string;
  /** The slot with the highest status of the table so far; null while no event was accepted to run. */
  statusSlot: string | null;
  /**
   * True if no further status can follow that of this slot. False in a side record that must not be forgotten yet: a
   * claim that is open.
   */
  isClosed: boolean;
  /** Facts that are equal in all events of the record. */
  fixedFacts: Readonly<Record<string, string>>;
  lease: RecordLease | null;
  slots: Record<string, Slot>;
  /** The greatest signed timestamp so far. */
  signedAt: number;
  /** When the record may be forgotten, if everything in it is finished. */
  expiresAt: number;
  /** The keys of the claims that it has on references, each with the token of the claim. Left out if it has none. */
  claims?: Readonly<Record<string, string>>;
}

/** The reference of an event, as a label. Null if it has none, or if its reading is not certain. */
export function referenceOf({ fixedFacts }: IdempotencyRecord, { referenceId }: Slot): string | null {
  return referenceId ?? fixedFacts.referenceId ?? null;
}

/** True if an event in this state is finished. */
export function isEndState(state: string): state is "done" | "stale" | "discarded" {
  return state === "done" || state === "stale" || state === "discarded";
}

/** How long a kept text of an instrumentation may be, in characters. */
export const MAX_TRACE_CHARS = 100;

/** True while the slot must not be forgotten. */
export function isUnfinished({ state }: Slot): boolean {
  return !isEndState(state);
}

/**
 * True if everything in the record is finished. Then it may be forgotten at its expiry. A side record is finished if it
 * is not leased, and is not an open claim.
 */
export function isFinished({ slots, isClosed, lease }: IdempotencyRecord): boolean {
  const all = Object.values(slots);
  return all.length === 0 ? isClosed && lease === null : !all.some(isUnfinished);
}

/** A history keeps its first line and its latest lines, this many in all. So replays in a loop cannot make a record grow. */
const MAX_HISTORY_LINES = 50;
/** A history keeps this many characters of each text. */
const MAX_HISTORY_TEXT_CHARS = 500;

/** The kept part of an ended event is below 3 KB: this many lines, and this many characters of each text. */
const MAX_ENDED_HISTORY_LINES = 8;
const MAX_ENDED_TEXT_CHARS = 120;

/** Copies within this time count as one. Counting a copy is a write, and anybody can send copies. */
const COPIES_APART_MS = 1_000;

/** Counts a copy of an event that has not ended. False if nothing has to be written. */
export function countCopy({ work, acceptedAt }: Slot, now: number): boolean {
  if (work === null || now - (work.lastCopyAt ?? acceptedAt) < COPIES_APART_MS) return false;
  work.copies = (work.copies ?? 0) + 1;
  work.lastCopyAt = now;
  return true;
}

/** Adds a line to an event's history. */
export function addHistory({ history }: Pick<OpenWork, "history">, entry: HistoryEntry): void {
  history.push(shortenLine(entry, MAX_HISTORY_TEXT_CHARS));
  if (history.length > MAX_HISTORY_LINES) history.splice(1, history.length - MAX_HISTORY_LINES);
}

/**
 * Ends a slot. From then on it only serves to recognise copies. It is kept for as long as if the event had just been delivered.
 */
export function endSlot(
  record: IdempotencyRecord,
  slot: Slot,
  endEntry: HistoryEntry & { readonly what: "done" | "stale" | "discarded" },
): void {
  const { work } = slot;
  const retentionMs = work?.retentionMs ?? 0;
  record.expiresAt = Math.max(record.expiresAt, Math.max(endEntry.at, record.signedAt) + retentionMs);
  slot.state = endEntry.what;
  const past = work === null ? null : endedHistoryOf(work, endEntry);
  if (past !== null) slot.past = past;
  const replayData = work === null ? null : replayDataOf(slot, work, endEntry.what);
  if (replayData !== null) {
    slot.kept = replayData;
    record.expiresAt = Math.max(record.expiresAt, endEntry.at + replayData.keepMs);
  }
  slot.work = null;
}

/**
 * The part to keep, so that the event can be run again. Null for an event outside of the table that was released: the
 * event that was read from it keeps its own part.
 */
function replayDataOf({ verdict }: Slot, work: OpenWork, endState: SlotState): ReplayData | null {
  const { keepMs, delivery, retentionMs, previousStatus, previousAmount } = work;
  if (keepMs === undefined || (endState === "done" && isOutsideTable(verdict))) return null;
  return { delivery, retentionMs, previousStatus, previousAmount, keepMs };
}

/** The part of an event's life to keep. For nearly every event this is nothing: it was accepted and done. */
function endedHistoryOf(
  { history, handlerStates, copies = 0, lastCopyAt }: OpenWork,
  endEntry: HistoryEntry,
): EndedHistory | null {
  if (history.length <= 1 && copies === 0 && endEntry.by === undefined) return null;
  const skipped = countSkipped(handlerStates);
  const lastLine = skipped === 0 ? endEntry : { ...endEntry, skipped };
  const lines = [...history, lastLine].map((line) => shortenLine(line, MAX_ENDED_TEXT_CHARS));
  if (lines.length > MAX_ENDED_HISTORY_LINES) lines.splice(1, lines.length - MAX_ENDED_HISTORY_LINES);
  return { history: lines, copies, lastCopyAt: lastCopyAt ?? null };
}

/** How many effects the handlers of the last run skipped, because they had happened before. */
function countSkipped(handlerStates: OpenWork["handlerStates"]): number {
  return Object.values(handlerStates).reduce((sum, { skipped = 0 }) => sum + skipped, 0);
}

function shortenLine(line: HistoryEntry, max: number): HistoryEntry {
  const short = Object.entries(line).map(([name, value]) => [
    name,
    typeof value === "string" ? value.slice(0, max) : value,
  ]);
  return Object.fromEntries(short) as HistoryEntry;
}
