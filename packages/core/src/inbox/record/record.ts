/**
 * The idempotency record: everything that is known about one transaction, or one webhook, of one tenant. Each event of it
 * has a slot, in one of these states:
 *
 *     (nothing) --accept--> waiting --begin--> running --finish--> done
 *        |                     ^ ^                |
 *        |                     | '-----retry------|
 *        |                     |                  v
 *        '-----accept----------|----------------> held --discard--> discarded
 *                              '-----replay-------'
 *     waiting --(a PENDING, once a terminal status is recorded)--> stale
 *
 * Under a lease a held slot's onHeld handlers are told of it; it stays held. The modules of this folder change a record
 * without I/O: the engine calls them on a copy and swaps that for what the store has. `docs/concepts/deduplication.md` has the
 * table that `table.ts` follows.
 */
import { PayhooksError } from "../../protocol/errors.ts";
import type { FlowName } from "../../protocol/events.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { SlotState, StoredDelivery } from "./event.ts";
import type { HistoryEntry, Step } from "./lease.ts";

/** One event of a record. */
export interface Slot {
  readonly name: string;
  readonly status: string;
  /** Amounts that arrived, by source. */
  amounts: Readonly<Record<string, string>>;
  readonly verdict: "run" | HeldReason;
  state: SlotState;
  /** Held and the onHeld handlers are through, or there were none. */
  told: boolean;
  replays: number;
  /** When it was accepted, on the store's clock. */
  readonly acceptedAt: number;
  /** Names the begin that last took it. It stays past the run's end, so that whoever wrote that can recognise it. */
  token: string | null;
  /** What it takes to run it; dropped at the end. */
  work: Work | null;
  /** What is kept of its life once it has ended; left out where that was nothing out of the ordinary. */
  past?: Past;
  /** Names the last decision of a person, so that whoever wrote it can recognise it. */
  decision?: string;
}

/** What is kept of the life of an event that has ended. */
export interface Past {
  /** Its first lines and its last ones, the end included. */
  readonly history: readonly HistoryEntry[];
  readonly copies: number;
  readonly lastCopyAt: number | null;
}

/** The part of a slot that lives until the slot is finished. */
export interface Work {
  readonly delivery: StoredDelivery;
  /** How long the record is kept after the slot's end, in milliseconds. */
  readonly retentionMs: number;
  reason: HeldReason | null;
  detail: string | null;
  heldAt: number;
  /** Nobody has to look at it before this time (the store's clock). */
  dueAt: number;
  /** How far away that was when it was written: a clock that was wrong then shows by it. */
  dueInMs: number;
  /** When it was last begun before its time; null: never. */
  forcedAt: number | null;
  steps: Record<string, Step>;
  only: readonly string[] | null;
  evenIfExpired: boolean;
  /** Ids and references of each of its readings, where it has several. */
  readonly foundBy?: readonly string[];
  /** The last replay is to have effects anew. */
  again?: true;
  readonly previousStatus: string | null;
  readonly previousAmount: string | null;
  history: HistoryEntry[];
  /** Copies that were counted, and when the last of them came; left out while there was none. */
  copies?: number;
  lastCopyAt?: number;
}

/** The lease under which one slot of a record runs. */
export interface RecordLease {
  readonly slot: string;
  readonly token: string;
  until: number;
  /** How far away its end was when it was written. */
  lengthMs: number;
}

/** One transaction, or one webhook, of one tenant. */
export interface IdempotencyRecord {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly id: string;
  /** The highest listed status, and its slot; null while nothing was accepted to run. */
  status: string | null;
  statusSlot: string | null;
  terminal: boolean;
  identity: Readonly<Record<string, string>>;
  lease: RecordLease | null;
  slots: Record<string, Slot>;
  /** The greatest signed timestamp that was seen. */
  signedAt: number;
  /** When it may be forgotten, once nothing in it is unfinished. */
  expiresAt: number;
}

/** True while the slot must not be forgotten. */
function isUnfinished(slot: Slot): boolean {
  return slot.state === "waiting" || slot.state === "running" || slot.state === "held";
}

/** True when nothing in the record is unfinished: it may be forgotten at its expiry. */
export function isFinished(record: IdempotencyRecord): boolean {
  return !Object.values(record.slots).some(isUnfinished);
}

/** Lines of a history that are kept: the first one, and the latest. Who replays in a loop makes no record grow. */
const MAX_HISTORY = 50;

/** What is kept of an event that has ended is below 3 KB: so many lines, with so many characters of each text. */
const MAX_PAST = 8;
const MAX_TEXT = 120;

/** Copies that come closer together count as one: each that counts is a write, and copies are anybody's to send. */
const COPIES_APART_MS = 1_000;

/** Counts a copy of an event that has not ended. False: nothing is to be written. */
export function countCopy({ work, acceptedAt }: Slot, now: number): boolean {
  if (work === null || now - (work.lastCopyAt ?? acceptedAt) < COPIES_APART_MS) return false;
  work.copies = (work.copies ?? 0) + 1;
  work.lastCopyAt = now;
  return true;
}

/** Adds a line to an event's life. */
export function addHistory({ history }: Work, entry: HistoryEntry): void {
  history.push(entry);
  if (history.length > MAX_HISTORY) history.splice(1, history.length - MAX_HISTORY);
}

/** Throws `ERR_HELD_FULL` when no further entry may be held at accept. */
export function checkHeldRoom(held: number, maxHeld: number): void {
  if (held < maxHeld) return;
  throw new PayhooksError("ERR_HELD_FULL", `${held} events are held, the bound.`, {
    fix: "Look at receiver.held.list(), replay or discard entries, or raise maxHeld.",
  });
}

/** From its end on a slot is only there to recognise copies, for as long as if it had just been delivered. */
export function end(
  record: IdempotencyRecord,
  slot: Slot,
  ending: HistoryEntry & { readonly what: "done" | "stale" | "discarded" },
): void {
  const { work } = slot;
  const retentionMs = work?.retentionMs ?? 0;
  record.expiresAt = Math.max(record.expiresAt, Math.max(ending.at, record.signedAt) + retentionMs);
  slot.state = ending.what;
  const past = work === null ? null : pastOf(work, ending);
  if (past !== null) slot.past = past;
  slot.work = null;
}

/** Of nearly every event there is nothing to be kept: it was accepted and done. */
function pastOf({ history, copies = 0, lastCopyAt }: Work, ending: HistoryEntry): Past | null {
  if (history.length <= 1 && copies === 0 && ending.by === undefined) return null;
  const lines = [...history.map(shortened), shortened(ending)];
  if (lines.length > MAX_PAST) lines.splice(1, lines.length - MAX_PAST);
  return { history: lines, copies, lastCopyAt: lastCopyAt ?? null };
}

function shortened(line: HistoryEntry): HistoryEntry {
  const short = Object.entries(line).map(([name, value]) => [
    name,
    typeof value === "string" ? value.slice(0, MAX_TEXT) : value,
  ]);
  return Object.fromEntries(short) as HistoryEntry;
}
