import type { AnyReceiver, HeldReason, Notice } from "@payhooks/core";

const MINUTE_MS = 60_000;
/** The minutes of a day. */
const MINUTES_PER_DAY = 24 * 60;
const MAX_ENTRIES = 50;

/** How often each thing happened within one minute. */
export interface MinuteCounts {
  /** Everything that arrived, whatever the answer. */
  readonly deliveries: number;
  readonly finished: number;
  readonly retried: number;
  readonly held: number;
  readonly refused: number;
}

/** A minute of the chart. */
export interface Minute extends MinuteCounts {
  /** Its beginning, in milliseconds since the epoch. */
  readonly at: number;
}

/** Something that a person did, or should know about. */
export interface LogEntry {
  readonly at: number;
  readonly notice: Extract<Notice, { readonly type: (typeof LOGGED_TYPES)[number] }>;
}

/** The notices that become entries. */
const LOGGED_TYPES = [
  "replayed",
  "discarded",
  "erased",
  "alert",
  "data-lost",
  "inbox-error",
  "warning",
  "keys-changed",
  "keys-unreadable",
] as const;

function isLogged(notice: Notice): notice is LogEntry["notice"] & Notice {
  return LOGGED_TYPES.some((type) => type === notice.type);
}

type CounterName = keyof MinuteCounts;

/** The reasons that are found when a delivery arrives. All others are found later, when the event runs. */
const ARRIVAL_REASONS: ReadonlySet<HeldReason> = new Set<HeldReason>([
  "ambiguous",
  "malformed",
  "unexpected",
  "unrecognized",
  "conflict",
  "mismatch",
  "reference-reused",
]);

const ZERO_COUNTS: MinuteCounts = { deliveries: 0, finished: 0, retried: 0, held: 0, refused: 0 };

/** The events of the last day in this process, minute by minute. It learns of them from the receiver's notices. */
export class Activity {
  /** When this process began to count, in milliseconds since the epoch. */
  readonly since: number;
  /** A ring buffer. Each minute replaces the same minute of the day before. */
  readonly #minutes: ({ at: number } & Record<CounterName, number>)[] = [];
  readonly #entries: LogEntry[] = [];
  readonly #listeners = new Set<() => void>();

  constructor(now: number) {
    this.since = now;
  }

  /** Counts a notice. */
  recordNotice(notice: Notice): void {
    for (const counter of countersOf(notice)) this.#minuteOf(notice.at)[counter]++;
    if (isLogged(notice)) {
      this.#entries.unshift({ at: notice.at, notice });
      this.#entries.splice(MAX_ENTRIES);
    }
    for (const listener of this.#listeners) listener();
  }

  /** The last `count` minutes, oldest first. The present minute is included. */
  minutes(now: number, count: number): readonly Minute[] {
    const last = Math.floor(now / MINUTE_MS);
    return Array.from({ length: Math.min(count, MINUTES_PER_DAY) }, (_, i) => {
      const minute = last - Math.min(count, MINUTES_PER_DAY) + 1 + i;
      const at = minute * MINUTE_MS;
      const minuteCounts = this.#minutes[minute % MINUTES_PER_DAY];
      return minuteCounts?.at === at ? { ...minuteCounts } : { at, ...ZERO_COUNTS };
    });
  }

  /** The newest entry is first. */
  get entries(): readonly LogEntry[] {
    return this.#entries;
  }

  /** Calls the listener after every notice, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #minuteOf(time: number): Record<CounterName, number> {
    const minute = Math.floor(time / MINUTE_MS);
    const at = minute * MINUTE_MS;
    const index = minute % MINUTES_PER_DAY;
    const minuteCounts = this.#minutes[index];
    if (minuteCounts?.at === at) return minuteCounts;
    const fresh = { at, ...ZERO_COUNTS };
    this.#minutes[index] = fresh;
    return fresh;
  }
}

function countersOf(notice: Notice): readonly CounterName[] {
  switch (notice.type) {
    case "accepted":
    case "duplicate":
    case "stale":
      return ["deliveries"];
    case "refused":
      return ["deliveries", "refused"];
    case "held":
      return ARRIVAL_REASONS.has(notice.reason) ? ["deliveries", "held"] : ["held"];
    case "retry":
      return ["retried"];
    case "finished":
      return ["finished"];
    default:
      return [];
  }
}

const ACTIVITIES = new WeakMap<AnyReceiver, Activity>();

/** The activity of a receiver. All consoles of the receiver share it. It begins to count at the first call. */
export function activityOf(receiver: AnyReceiver): Activity {
  const knownActivity = ACTIVITIES.get(receiver);
  if (knownActivity !== undefined) return knownActivity;
  const activity = new Activity(Date.now());
  receiver.observe((notice) => activity.recordNotice(notice));
  ACTIVITIES.set(receiver, activity);
  return activity;
}
