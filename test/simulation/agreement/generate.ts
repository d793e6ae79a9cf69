/** Random histories: the same for the same seed. */
import { seededRandom } from "../../faults/harness/scope.ts";
import type { Call, Change, Fault, FilterChoice, History, Item, ProcessNumber, TextKind } from "./history.ts";

/** Few records, so that calls often concern the same one. Every tenth call adds one more. */
const KEYS = 6;
const MIN_CALLS = 15;
const MAX_CALLS = 45;
/** The share of histories with wrong clocks. */
const SHARE_WITH_WRONG_CLOCKS = 0.2;

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;
/** Longer than any history. */
const LONG = 8 * DAY;

const TEXTS = ["plain", "plain", "plain", "other", "other", "nul", "half", "quotes", "cut"] as const;

/** How time passes in a history. */
interface Times {
  readonly wrongClocks: boolean;
  /** How long finished records live. */
  readonly lives: readonly [number, ...number[]];
  /** How long a poll hides records. All processes of one inbox hide them for the same time. */
  readonly hideMs: number;
}

const SHORT_LIVES = [0, 1, 10, 500, SECOND, SECOND, 6 * SECOND] as const;
const LONG_LIVES = [LONG] as const;

/** Random choices. */
class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.#random() * (to - from + 1));
  }

  of<const T>(choices: readonly [T, ...T[]]): T {
    return choices[this.between(0, choices.length - 1)] ?? choices[0];
  }
}

export function generateHistory(seed: number): History {
  const dice = new Dice(seed);
  const wrongClocks = dice.chance(SHARE_WITH_WRONG_CLOCKS);
  // If clocks are set back, nothing expires.
  const lives = wrongClocks
    ? LONG_LIVES
    : dice.of([SHORT_LIVES, SHORT_LIVES, [...SHORT_LIVES, LONG, LONG, LONG]]);
  const times: Times = { wrongClocks, lives, hideMs: dice.of([1, 500, SECOND, 30 * SECOND]) };
  const length = dice.between(MIN_CALLS, MAX_CALLS);
  const calls: Call[] = [];
  while (calls.length < length) calls.push(callOf(dice, calls.length, times));
  return { wrongClocks, calls: [...calls, ...lastCalls] };
}

/** At the end, all lists and counts are compared, also after records have expired. */
const lastCalls: readonly Call[] = [
  { kind: "counts", by: 0 },
  list(0, {}),
  list(1, { reason: "malformed" }),
  { kind: "pass", ms: DAY },
  { kind: "counts", by: 0 },
  list(1, { state: "finished" }),
  finish(0, [20, 21], 1, {}),
  { kind: "pass", ms: SECOND },
  { kind: "prune", by: 0 },
  finish(1, [0, 1, 2, 3], LONG, { expected: "last" }),
  finish(0, [0, 1, 2, 3], LONG, {}),
  list(0, { state: "finished" }),
  list(0, {}),
  { kind: "take", by: 1, limit: 1_000, hideMs: HOUR },
];

function callOf(dice: Dice, made: number, times: Times): Call {
  const by: ProcessNumber = dice.of([0, 1]);
  const key = (): number => dice.between(0, KEYS - 1 + Math.floor(made / 10));
  const keys = (most: number): readonly number[] => Array.from({ length: dice.between(0, most) }, key);
  const kind = dice.of([
    ...(["swap", "swap", "swap", "swap", "swap", "swap", "swap", "take", "take", "take", "take"] as const),
    ...(["pass", "pass", "pass", "list", "list", "counts", "counts", "read", "read", "resend"] as const),
    ...(["prune", "canary", "now", "replicated", "reopen"] as const),
  ]);
  switch (kind) {
    case "swap":
      return { kind, by, items: itemsOf(dice, key, times) };
    case "take":
      return { kind, by, limit: dice.of([0, 1, 2, 3, 10]), hideMs: times.hideMs };
    case "pass":
      return { kind, ms: passing(dice, times) };
    case "read":
      return { kind, by, keys: keys(5) };
    case "list":
      return listOf(dice, by);
    case "resend":
      return { kind, by, ago: dice.between(0, 2) };
    case "now":
      return { kind, by, key: key() };
    case "replicated":
      return { kind, by, keys: keys(3) };
    default:
      return { kind, by };
  }
}

function passing(dice: Dice, { wrongClocks }: Times): number {
  if (wrongClocks && dice.chance(0.3)) return -dice.of([1, 3 * SECOND, 5 * SECOND, 10 * SECOND, HOUR]);
  return dice.of([1, 1, 10, 499, 500, SECOND, SECOND, 5 * SECOND, 6 * SECOND, 30 * SECOND, HOUR]);
}

function itemsOf(dice: Dice, key: () => number, times: Times): readonly Item[] {
  const keys = new Set(Array.from({ length: dice.of([0, 1, 1, 1, 2, 3, 5]) }, key));
  return [...keys].map((key) => {
    const change = changeOf(dice, times);
    return { key, change, fault: dice.chance(0.25) ? faultOf(dice) : {} };
  });
}

function changeOf(dice: Dice, times: Times): Change {
  if (times.wrongClocks && dice.chance(0.15)) {
    return { kind: "wrong-clock", aheadMs: dice.of([1, 4 * SECOND, 5 * SECOND, 5 * SECOND + 1, HOUR]) };
  }
  const kind = dice.of([
    "accept",
    "accept",
    "accept",
    "begin",
    "begin",
    "end",
    "end",
    "end",
    "decide",
    "decide",
    "claim",
    "same",
  ]);
  switch (kind) {
    case "accept":
      return {
        kind,
        status: dice.of(["PENDING", "SUCCESS", "FAILED", "CANCELLED"]),
        held: dice.of([null, null, null, "malformed", "unexpected", "ambiguous"]),
        agoMs: dice.of([0, 0, 0, 1, 20, SECOND]),
        delayMs: dice.of([0, 0, 0, 1, 0.5, 500, SECOND, 6 * SECOND, HOUR]),
        ended: dice.chance(0.3),
        retentionMs: dice.of(times.lives),
        text: dice.chance(0.02) ? "long" : dice.of<TextKind>(TEXTS),
      };
    case "begin":
      // A lease is longer than a poll hides records, also if its write comes as late as it may.
      return { kind, leaseMs: times.hideMs + dice.of([6 * SECOND, 6.5 * SECOND, 7 * SECOND, 30 * SECOND]) };
    case "end":
      return {
        kind,
        how: dice.of(["done", "done", "done", "held", "handed-back", "retry"]),
        delayMs: dice.of([0, 1, 999.5, SECOND, HOUR]),
      };
    case "decide":
      return { kind, decision: dice.of(["replay", "discard"]) };
    case "claim":
      return { kind, lifetimeMs: dice.of(times.lives) };
    default:
      return { kind };
  }
}

function faultOf(dice: Dice): Fault {
  const kind = dice.of(["expected", "expected", "time", "time", "time", "unfit"]);
  if (kind === "expected")
    return { expected: dice.of(["earlier", "earlier", "last", "none", "none", "unknown"]) };
  // A write that is too big closes a connection, and takes long.
  if (kind === "unfit") return { unfit: dice.chance(0.02) ? "huge" : dice.of(["nul", "long"]) };
  return { lateMs: dice.of([-HOUR, -1, 1, 3 * SECOND, 5 * SECOND, 5 * SECOND + 1, 6 * SECOND, HOUR]) };
}

function listOf(dice: Dice, by: ProcessNumber): Call {
  const isByState = dice.chance(0.5);
  const sometimes = <T>(share: number, value: T): T | undefined => (dice.chance(share) ? value : undefined);
  const filter: FilterChoice = {
    state: sometimes(0.6, dice.of(["waiting", "retrying", "running", "held", "finished", "any"])),
    flow: sometimes(0.1, dice.of(["payments", "connect"])),
    tenant: sometimes(0.15, dice.of(["", "a", "other"])),
    event: sometimes(0.1, dice.of(["DEPOSIT", "other"])),
    reason: sometimes(0.3, dice.of(["malformed", "unexpected", "rejected"])),
    referenceId: sometimes(0.1, dice.of(["o-1", "other"])),
    id: sometimes(0.1, dice.of(["tx-1", "other"])),
  };
  const event = (share: number): number | null => (dice.chance(share) ? dice.between(0, 9) : null);
  return {
    kind: "list",
    by,
    filter: isByState ? { state: filter.state } : filter,
    since: event(0.15),
    until: event(0.15),
    after: event(0.25),
    limit: dice.of([1, 2, 3, 8, 50]),
  };
}

/** Writes records with one event each, which is done at once. */
function finish(by: ProcessNumber, keys: readonly number[], retentionMs: number, fault: Fault): Call {
  const change: Change = {
    kind: "accept",
    status: "SUCCESS",
    held: null,
    agoMs: 0,
    delayMs: 0,
    ended: true,
    retentionMs,
    text: "plain",
  };
  return { kind: "swap", by, items: keys.map((key) => ({ key, change, fault })) };
}

function list(by: ProcessNumber, filter: FilterChoice): Call {
  return { kind: "list", by, filter, since: null, until: null, after: null, limit: 50 };
}
