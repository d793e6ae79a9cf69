import { Dice } from "./dice.ts";
import { FAULT_POINTS, type FaultPoint, isCallFault, type PlannedFault, USUAL_MEETINGS } from "./faults.ts";
import { pausesOf, sharingDecisionsOf, sharingEventOf, sharingFaultOf } from "./reference-plan.ts";

/** An event of the service. Events with one `id` belong to one transaction, or one webhook. */
export interface PlannedEvent {
  /** Its place in the whole plan; it stays when others are taken away. */
  readonly number: number;
  readonly flow: "payments" | "connect";
  readonly name: string;
  readonly id: number;
  /** Empty in the connect flow. */
  readonly status: string;
  /** Two events that differ in nothing else contradict each other. */
  readonly variant: number;
  /** The merchant's reference: one for each transaction, unless several share it. */
  readonly reference: number;
  /** The connected account, if several events are about it; null or left out: one of its own. */
  readonly account?: number | null;
  /** After how many pauses it is sent. */
  readonly period: number;
  /** The time that is signed, in milliseconds since the history began, as if the periods between the pauses took no time. */
  readonly signedAt: number;
  /** Since its period began. */
  readonly sentAt: number;
}

/** A person's decision about one of the entries that are held at that time, or about all of them. */
export interface PlannedDecision {
  readonly number: number;
  readonly period: number;
  /** Since its period began. */
  readonly at: number;
  readonly what: "replay" | "discard";
  readonly isForAll: boolean;
}

/** Everything that is known before a history begins. The dice decide the rest on the way. */
export interface Plan {
  readonly seed: number;
  readonly processes: number;
  readonly events: readonly PlannedEvent[];
  readonly faults: readonly PlannedFault[];
  readonly decisions: readonly PlannedDecision[];
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly concurrency: number;
  readonly replicated: boolean;
  readonly keepsTexts: boolean;
  /** Records are sealed, and a change of the key is under way: every other process seals with another key, and all open both. */
  readonly isSealed: boolean;
  readonly operation: Operation;
  /** A deploy is under way to a version that writes another format of records, which the old version cannot read. */
  readonly mixesFormats: boolean;
  /**
   * Each process has other handlers than the one before it, two die when a handler has returned, and a person replays what is held
   * once their leases have ended.
   */
  readonly mixesHandlers: boolean;
  /** Handlers of payments book in a database, with `ctx.transaction`. */
  readonly hasEffects: boolean;
  /** Several transactions have one reference, of which one may succeed (`oneSuccessPerReference`). */
  readonly sharesReferences: boolean;
  /** Pauses in which nothing happens. Each begins once all is quiet. Empty if no records are to expire. */
  readonly pausesMs: readonly number[];
}

/**
 * How the merchant runs the handlers: in the background of each process, before the answer (`ack: "handled"`), after the response,
 * or by a cron job alone. In the last two, a cron job runs due events.
 */
export type Operation = "background" | "handled" | "after-response" | "cron";

export interface Size {
  readonly processes: number;
  readonly events: number;
  readonly faults: number;
  /**
   * The payments belong to this many transactions, unless several share a reference. The fewer, the more writes are of one record.
   */
  readonly transactions: number;
  /** How many of the faults are answers to a write that get lost, from 0 to 1. */
  readonly lostAnswers: number;
}

export const DEFAULT_SIZE: Size = { processes: 3, events: 20, faults: 5, transactions: 6, lostAnswers: 0 };
/** Histories in which a process often does not know whether its write was made, while another process writes the same record. */
export const IN_DOUBT: Size = { processes: 3, events: 20, faults: 8, transactions: 2, lostAnswers: 0.9 };

const SENT_WITHIN_MS = 2_000;
const BURST_MS = 500;
const WEBHOOKS = 40;

/** The plan of a seed. */
export function planOf(seed: number, size: Size = DEFAULT_SIZE): Plan {
  const { processes, events, faults } = size;
  const dice = new Dice(seed);
  const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number);
  const sharesReferences = dice.chance(0.15, "references");
  const pausesMs = sharesReferences ? pausesOf(dice) : [];
  const mixesHandlers = dice.chance(0.15, "handlers");
  // A claim, or a subject, that a process cannot read is not simulated yet.
  const isSealed = dice.chance(0.1, "sealed");
  const mixesFormats = !sharesReferences && dice.chance(0.15, "formats");
  const planned = withClosings(
    dice,
    numbers(faults).map((number) => {
      if (mixesHandlers && number < 2) return deathOf(dice, number);
      return sharesReferences && number > 2 ? sharingFaultOf(dice, number) : faultOf(dice, number, size);
    }),
  );
  return {
    seed,
    processes,
    events: numbers(events).map((number) =>
      sharesReferences
        ? sharingEventOf(dice, number, sentAtOf(dice, number), pausesMs)
        : eventOf(dice, number, size, !mixesFormats),
    ),
    faults: planned,
    decisions: sharesReferences
      ? sharingDecisionsOf(dice, pausesMs.length + 1)
      : numbers(mixesHandlers ? 4 : 2).map((number) => decisionOf(dice, number)),
    leaseMs: dice.pick([600, 1_500, 4_000], "lease"),
    pollMs: dice.pick([250, 500, 1_000], "poll"),
    concurrency: dice.pick([1, 2, 16], "concurrency"),
    // Only a store with replicas is waited for.
    replicated: planned.some(({ site }) => site === "replicated") || dice.chance(0.4, "replicated"),
    keepsTexts: isSealed || dice.chance(0.1, "texts"),
    isSealed,
    operation: dice.pick(OPERATIONS, "operation"),
    mixesFormats,
    mixesHandlers,
    // The merchant's database keeps the ids of effects for a shorter time than these histories last.
    hasEffects: !sharesReferences && dice.chance(0.3, "effects"),
    sharesReferences,
    pausesMs,
  };
}

const OPERATIONS: readonly [Operation, ...Operation[]] = [
  "background",
  "background",
  "background",
  "background",
  "handled",
  "after-response",
  "cron",
];

function sentAtOf(dice: Dice, number: number): number {
  const at = dice.between(0, SENT_WITHIN_MS, "sent", number);
  // Half of them come in bursts, so that a process has several to write in one turn, and of one record.
  return dice.chance(0.5, "burst", number) ? Math.floor(at / BURST_MS) * BURST_MS : at;
}

function eventOf(dice: Dice, number: number, { transactions }: Size, sharesAccounts: boolean): PlannedEvent {
  const time = { sentAt: sentAtOf(dice, number), signedAt: 0, period: 0 };
  const variant = dice.chance(0.2, "variant", number) ? 1 : 0;
  if (dice.chance(0.5, "flow", number)) {
    const name = dice.pick(CONNECT_EVENTS, "event", number);
    // Most webhooks are of their own; some contradict another one.
    const id = dice.chance(0.15, "own", number) ? dice.whole(0, 2, "id", number) : 3 + (number % WEBHOOKS);
    // Half of the accounts are one of two, so that events about them follow each other.
    const isShared =
      sharesAccounts &&
      name.startsWith("connected_account.") &&
      id >= 3 &&
      dice.chance(0.5, "account", number);
    const subject = isShared
      ? { account: dice.whole(0, 1, "account", number), signedAt: number * 10 }
      : { account: null };
    return { number, flow: "connect", name, id, status: "", variant, reference: id, ...time, ...subject };
  }
  const id = dice.whole(0, transactions - 1, "id", number);
  const name = id % 3 === 2 ? "WITHDRAWAL" : "DEPOSIT";
  const status = dice.pick(STATUSES, "status", number);
  return { number, flow: "payments", name, id, status, variant, reference: id, ...time };
}

const STATUSES = [
  "PENDING",
  "PENDING",
  "PENDING",
  "SUCCESS",
  "SUCCESS",
  "SUCCESS",
  "FAILED",
  "CANCELLED",
] as const;
const CONNECT_EVENTS = [
  "connected_account.approved",
  "connected_account.approved",
  "connected_account.declined",
  "settlement.approved",
  "settlement.approved",
  "settlement.declined",
] as const;

/** The first two decisions come together with events, the others after the leases of dead processes have ended. */
function decisionOf(dice: Dice, number: number): PlannedDecision {
  const isForAll = number >= 2;
  return {
    number,
    period: 0,
    at: isForAll
      ? dice.between(2_000, 10_000, "decided at", number)
      : dice.between(500, SENT_WITHIN_MS * 2, "decided at", number),
    what: isForAll || dice.chance(0.6, "decision", number) ? "replay" : "discard",
    isForAll,
  };
}

/** A process dies before it can write that a handler has returned. */
function deathOf(dice: Dice, number: number): PlannedFault {
  const nth = dice.whole(1, USUAL_MEETINGS.handler, "died", number);
  return { what: "death", site: "handler", phase: "after", nth };
}

function faultOf(dice: Dice, number: number, { lostAnswers }: Size): PlannedFault {
  if (dice.chance(lostAnswers, "lost answer", number)) {
    const nth = dice.whole(1, USUAL_MEETINGS.swap, "nth", number);
    return { what: "answer-lost", site: "swap", phase: "at", nth };
  }
  const points = dice.chance(0.4, "telling", number) ? ON_HELD_POINTS : FAULT_POINTS;
  const point = points[dice.whole(0, points.length - 1, "fault", number)];
  if (point === undefined) throw new Error("there are no faults");
  return { ...point, nth: dice.whole(1, USUAL_MEETINGS[point.site], "nth", number) };
}

/** A process closes before the end only if a deploy makes it: a fault of a close needs a deploy before it. */
function withClosings(dice: Dice, faults: readonly PlannedFault[]): readonly PlannedFault[] {
  if (faults.length < 2) return faults;
  const at = faults.findIndex(({ site }) => site === "close");
  if (at < 0) return faults;
  const deploy: PlannedFault = {
    what: "deploy",
    site: "takeDue",
    phase: "before",
    nth: dice.whole(1, USUAL_MEETINGS.takeDue, "closing"),
  };
  return faults.map((fault, number) => (number === (at + 1) % faults.length ? deploy : fault));
}

/** Faults that show a mistake best: those of calls to the store, and processes that freeze or die during these calls. */
const ON_HELD_POINTS: readonly FaultPoint[] = FAULT_POINTS.filter(
  ({ what, site }) =>
    (site === "swap" || site === "takeDue" || site === "handler" || site === "replicated") &&
    (isCallFault(what) || what === "freeze" || what === "sleep" || what === "death" || what === "failover"),
);
