import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { AcceptOutcome, VerifiedEvent } from "./event.ts";
import type { IdempotencyRecord, Slot } from "./record.ts";

/** The table's ruling about an event, before anything is changed. */
export interface Ruling {
  readonly row: "own-slot" | 1 | 2 | 3 | 4 | 5 | 6 | 7;
  readonly outcome: Exclude<AcceptOutcome, "expired">;
  readonly slot: string;
  readonly verdict: "run" | HeldReason;
  /** The fields that contradict the record, without their values. Left out if none does. */
  readonly detail?: string;
}

/** The table of deduplication. Its rows are in the order of `docs/concepts/deduplication.md`. Rows 1 and 2 choose the slot. */
export function ruleOn(record: IdempotencyRecord | null, event: VerifiedEvent): Ruling {
  // An event without a rank has no place in the table: Payhooks could not read it with certainty, or did not expect it, or the
  // specification does not list its name or status.
  if (event.rank === null) {
    const slot = event.variantSlot();
    return (
      duplicateRuling(record?.slots[slot], slot) ?? {
        row: "own-slot",
        outcome: "held",
        slot,
        verdict: event.verdict,
      }
    );
  }
  if (record === null)
    return { row: 4, outcome: firstOutcome(event), slot: event.slot, verdict: event.verdict };
  if (factsDiffer(record.fixedFacts, event.fixedFacts)) {
    return mismatchRuling(1, record, event, () => differenceOf(record.fixedFacts, event.fixedFacts));
  }
  const sameSlot = record.slots[event.slot];
  if (sameSlot !== undefined && amountDiffers(sameSlot, event)) {
    return mismatchRuling(
      2,
      record,
      event,
      () => "amount differs from the one that arrived the same way before",
    );
  }
  const duplicate = duplicateRuling(sameSlot, event.slot);
  if (duplicate !== null) return duplicate;
  if (record.statusSlot === null)
    return { row: 4, outcome: firstOutcome(event), slot: event.slot, verdict: event.verdict };
  const rank = rankOf(record);
  if (!record.isClosed && event.rank > rank) {
    return {
      row: 5,
      outcome: event.verdict === "run" ? "progress" : "held",
      slot: event.slot,
      verdict: event.verdict,
    };
  }
  if (event.rank < rank) return { row: 6, outcome: "stale", slot: event.slot, verdict: "run" };
  const detail = `status differs from the ${record.isClosed ? "final " : ""}one that is recorded`;
  return { row: 7, outcome: "held", slot: event.slot, verdict: "conflict", detail };
}

/** The rank of the status so far. */
export function rankOf({ statusSlot, slots }: IdempotencyRecord): number {
  return (statusSlot === null ? null : slots[statusSlot]?.rank) ?? 0;
}

function firstOutcome(event: VerifiedEvent): "new" | "held" {
  return event.verdict === "run" ? "new" : "held";
}

/** Row 3: the record has the slot. The ruling repeats the verdict that was made when the event was accepted. */
function duplicateRuling(slot: Slot | undefined, key: string): Ruling | null {
  return slot === undefined ? null : { row: 3, outcome: "duplicate", slot: key, verdict: slot.verdict };
}

function mismatchRuling(
  row: 1 | 2,
  record: IdempotencyRecord,
  event: VerifiedEvent,
  detail: () => string,
): Ruling {
  const slot = event.variantSlot();
  return (
    duplicateRuling(record.slots[slot], slot) ?? {
      row,
      outcome: "held",
      slot,
      verdict: "mismatch",
      detail: detail(),
    }
  );
}

type Facts = Readonly<Record<string, string>>;

function factsDiffer(knownFacts: Facts, deliveredFacts: Facts): boolean {
  for (const field in deliveredFacts) if (isDifferent(knownFacts[field], deliveredFacts[field])) return true;
  return false;
}

/** A fact is compared only if both sides have it. */
function isDifferent(knownFact: string | undefined, deliveredFact: string | undefined): boolean {
  return knownFact !== undefined && knownFact !== deliveredFact;
}

function differenceOf(knownFacts: Facts, deliveredFacts: Facts): string {
  const names = Object.keys(deliveredFacts).filter((field) =>
    isDifferent(knownFacts[field], deliveredFacts[field]),
  );
  return `${names.join(", ")} ${names.length === 1 ? "differs" : "differ"} from what is recorded`;
}

function amountDiffers(slot: Slot, event: VerifiedEvent): boolean {
  const knownAmount = slot.amounts[event.delivery.arrivedBy];
  return knownAmount !== undefined && event.amount !== null && knownAmount !== event.amount;
}
