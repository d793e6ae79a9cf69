import { digestOf } from "./digest.ts";
import type { AcceptOutcome, HeldReason, VerifiedEvent } from "./inbox.ts";
import type { IdempotencyRecord, Slot } from "./record.ts";

/** What the table says of an event, before anything is changed. */
export interface Ruling {
  readonly row: "own-slot" | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;
  readonly outcome: Exclude<AcceptOutcome, "expired">;
  readonly slot: string;
  readonly verdict: "run" | HeldReason;
}

/** The table of deduplication. Rows in the order of `docs/deduplication.md`; rows 1 and 2 choose the slot. */
export function decide(record: IdempotencyRecord | null, event: VerifiedEvent): Ruling {
  // Not an event of the table: an entry, or a name or status that the specification does not list.
  if (event.rank === null) {
    const slot = event.variantSlot();
    return (
      atSlot(record?.slots[slot], slot) ?? { row: "own-slot", outcome: "held", slot, verdict: event.verdict }
    );
  }
  if (record === null)
    return { row: 5, outcome: firstOutcome(event), slot: event.slot, verdict: event.verdict };
  if (differs(record.identity, event.identity)) return mismatch(1, record, event);
  const same = record.slots[event.slot];
  if (same !== undefined && amountDiffers(same, event)) return mismatch(2, record, event);
  const known = atSlot(same, event.slot);
  if (known !== null) {
    const overtaken = known.row === 3 && event.rank === 0 && record.terminal;
    return overtaken ? { ...known, outcome: "stale" } : known;
  }
  if (record.status === null)
    return { row: 5, outcome: firstOutcome(event), slot: event.slot, verdict: event.verdict };
  if (!record.terminal && event.rank === 1) {
    return {
      row: 6,
      outcome: event.verdict === "run" ? "progress" : "held",
      slot: event.slot,
      verdict: event.verdict,
    };
  }
  if (record.terminal && event.rank === 0)
    return { row: 7, outcome: "stale", slot: event.slot, verdict: "run" };
  return { row: 8, outcome: "held", slot: event.slot, verdict: "conflict" };
}

function firstOutcome(event: VerifiedEvent): "new" | "held" {
  return event.verdict === "run" ? "new" : "held";
}

/** Rows 3 and 4: the slot is there. It repeats the verdict that was made when it was claimed. */
function atSlot(slot: Slot | undefined, key: string): Ruling | null {
  if (slot === undefined) return null;
  return slot.queued
    ? { row: 4, outcome: "duplicate", slot: key, verdict: slot.verdict }
    : { row: 3, outcome: "resume", slot: key, verdict: slot.verdict };
}

function mismatch(row: 1 | 2, record: IdempotencyRecord, event: VerifiedEvent): Ruling {
  const slot = event.variantSlot();
  return atSlot(record.slots[slot], slot) ?? { row, outcome: "held", slot, verdict: "mismatch" };
}

function differs(known: Readonly<Record<string, string>>, given: Readonly<Record<string, string>>): boolean {
  for (const field in given) {
    const value = known[field];
    const other = given[field] ?? "";
    // A finished record may keep a long fact as its digest only.
    if (value !== undefined && value !== other && value !== digestOf(other)) return true;
  }
  return false;
}

function amountDiffers(slot: Slot, event: VerifiedEvent): boolean {
  const known = slot.amounts[event.delivery.source];
  return known !== undefined && event.amount !== null && known !== event.amount;
}
