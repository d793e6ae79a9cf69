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
 * without I/O: the engine calls them on a copy and swaps that for what the store has. `docs/deduplication.md` has the
 * table that `table.ts` follows.
 */
import { PayhooksError } from "../../errors.ts";
import type { FlowName } from "../../events.ts";
import type { HeldReason, HistoryEntry, SlotState, Step, StoredDelivery } from "../inbox.ts";

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
  /** Who discarded it, and why. */
  discarded?: HistoryEntry;
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
  readonly previousStatus: string | null;
  readonly previousAmount: string | null;
  history: HistoryEntry[];
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
  state: "done" | "stale" | "discarded",
  now: number,
): void {
  const retentionMs = slot.work?.retentionMs ?? 0;
  record.expiresAt = Math.max(record.expiresAt, Math.max(now, record.signedAt) + retentionMs);
  slot.state = state;
  slot.work = null;
}
