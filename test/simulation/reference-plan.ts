import type { Dice } from "./dice.ts";
import type { PlannedFault } from "./faults.ts";
import type { PlannedDecision, PlannedEvent } from "./plan.ts";

const DAY_MS = 86_400_000;
/** How old the signed time of a new event may be: the default of receivers. */
export const WINDOW_MS: number = 7 * DAY_MS;
/** Records are kept for 8 days. After one of these pauses nothing has expired, after two of them, or a longer one, much has. */
const PAUSES_MS: readonly [number, ...number[]] = [5 * DAY_MS, 9 * DAY_MS];
const PAUSES = 2;
const TRANSACTIONS = 4;
const REFERENCES = 2;
const DECISIONS = 3;
/** When half of the events of a period come. */
const BURSTS_MS: readonly [number, ...number[]] = [0, 500, 1_000, 1_500];
/** How often such a history reads from its store, about. */
const READS = 30;

/** Times in which nothing happens, and after which old records have expired. */
export function pausesOf(dice: Dice): readonly number[] {
  return Array.from({ length: PAUSES }, (_, number) => dice.pick(PAUSES_MS, "pause", number));
}

/**
 * An event of one of several transactions that share a reference. Some events come after a pause, and contradict a transaction of
 * the time before it. A status that may run is signed in one period only: signed anew, it would run again once its record has
 * expired.
 */
export function sharingEventOf(
  dice: Dice,
  number: number,
  sentAt: number,
  pausesMs: readonly number[],
): PlannedEvent {
  const period = dice.whole(0, pausesMs.length, "period", number);
  const isLate = period > 0 && dice.chance(0.4, "late", number);
  const firstId = (isLate ? period - 1 : period) * TRANSACTIONS;
  const id = firstId + dice.whole(0, TRANSACTIONS - 1, "id", number);
  const [early, late] = id % 2 === 0 ? FAILS_EARLY : FAILS_LATE;
  const status = dice.pick(isLate ? late : early, "status", number);
  const variant = dice.chance(0.3, "variant", number) ? dice.whole(1, 2, "which variant", number) : 0;
  const own = dice.whole(0, REFERENCES - 1, "reference", id);
  return {
    number,
    flow: "payments",
    name: "DEPOSIT",
    id,
    status,
    // The one contradicts by its amount, the other one by its reference.
    variant: variant % 2,
    reference: variant === 2 ? (own + 1) % REFERENCES : own,
    period,
    signedAt: pausesMs.slice(0, period).reduce((sum, ms) => sum + ms, 0),
    sentAt,
  };
}

type Statuses = readonly [string, ...string[]];
/** The events of a transaction, in its own period and in the next one. */
const FAILS_EARLY: readonly [Statuses, Statuses] = [
  ["PENDING", "SUCCESS", "SUCCESS", "SUCCESS", "FAILED"],
  ["CANCELLED"],
];
const FAILS_LATE: readonly [Statuses, Statuses] = [
  ["PENDING", "SUCCESS", "SUCCESS", "SUCCESS"],
  ["FAILED", "FAILED", "CANCELLED"],
];

/** The decisions of each period. In some periods the last decision is about everything that is held. */
export function sharingDecisionsOf(dice: Dice, periods: number): readonly PlannedDecision[] {
  return Array.from({ length: periods * DECISIONS }, (_, number) => {
    const isForAll = number % DECISIONS === DECISIONS - 1 && dice.chance(0.3, "for all", number);
    return {
      number,
      period: Math.floor(number / DECISIONS),
      at: decidedAt(dice, number),
      what: dice.chance(0.6, "decision", number) ? "replay" : "discard",
      isForAll,
    };
  });
}

/** Half of the decisions come soon after a burst, while its events are being run. */
function decidedAt(dice: Dice, number: number): number {
  const at = dice.between(200, 4_000, "decided at", number);
  if (!dice.chance(0.5, "soon", number)) return at;
  return dice.pick(BURSTS_MS, "after which", number) + dice.between(5, 150, "soon after", number);
}

/**
 * After a SUCCESS has run, its process reads the record and then lets its claim expire. Some faults of each history happen there,
 * since the record may change in between.
 */
export function sharingFaultOf(dice: Dice, number: number): PlannedFault {
  const nth = dice.whole(1, READS, "read", number);
  const what = dice.pick(["late", "freeze", "sleep"] as const, "at a read", number);
  return { what, site: "read", phase: what === "late" ? "at" : "after", nth };
}
