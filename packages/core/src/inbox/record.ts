/**
 * The idempotency record. Everything that can happen to it is in `steps.ts`, as functions without I/O.
 *
 *     (nothing) --accept--> claimed --markQueued--> queued      `queued` is a flag beside the state
 *
 *     waiting --begin--> running --finish--> done
 *        ^                  |  |
 *        |<-----retry-------'  '-----------> held --tell--> held (told)
 *        |<--------------replay---------------'  '--------> discarded
 *        '--(PENDING under a terminal status)--> stale
 *
 * Stores call these functions inside their atomic step: in memory at once, in SQLite in a transaction, on Redis before a
 * compare-and-swap (decision 0007). `docs/deduplication.md` has the table that `table.ts` follows.
 */
import { PayhooksError } from "../errors.ts";
import type { FlowName } from "../events.ts";
import type { HeldReason, HistoryEntry, Job, SlotState, Step, StoredDelivery } from "./inbox.ts";

/** One claimed event of a record. */
export interface Slot {
  readonly name: string;
  readonly status: string;
  /** Amounts that arrived, by source. */
  amounts: Readonly<Record<string, string>>;
  readonly verdict: "run" | HeldReason;
  queued: boolean;
  state: SlotState;
  /** Held and the onHeld handlers are through, or there were none. */
  told: boolean;
  replays: number;
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
  dueAt: number;
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
}

/** One transaction, or one webhook, of one tenant. */
export interface IdempotencyRecord {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly id: string;
  /** The highest listed status, and its slot; null while nothing was claimed to run. */
  status: string | null;
  statusSlot: string | null;
  terminal: boolean;
  identity: Readonly<Record<string, string>>;
  /** Raised by every begin; part of each token. */
  fence: number;
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

/** Sets the flag that lets copies be acknowledged, unless the slot was replayed since. */
export function markQueued(record: IdempotencyRecord | null, slotKey: string, job: Job): void {
  const slot = record?.slots[slotKey];
  if (slot !== undefined && slot.replays === job.replay) slot.queued = true;
}

const NONE: ReadonlySet<string> = new Set();

/** Slots that a store's index of held entries has to name. */
export function heldSlots(record: IdempotencyRecord | null): ReadonlySet<string> {
  let held: Set<string> | null = null;
  for (const key in record?.slots) {
    if (record?.slots[key]?.state !== "held") continue;
    held ??= new Set();
    held.add(key);
  }
  return held ?? NONE;
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
