import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { Environment } from "../time/environment.ts";
import { BatchedStore } from "./batched-store.ts";
import { InFlight } from "./in-flight.ts";
import { copyRecord, isUnreadable } from "./record/codec.ts";
import { indexOf, type RecordIndex } from "./record/index-of.ts";
import type { IdempotencyRecord } from "./record/record.ts";
import type { RecordStore, Swap, Versioned } from "./store.ts";

/** The result of a step. */
export interface StepResult<T> {
  readonly answer: T;
  /** The record to write; null if the stored one stays as it is. */
  readonly record: IdempotencyRecord | null;
  /**
   * The write begins a run. If its outcome is unknown, the same write is sent again until the lease ends, since a run that was
   * begun has to run.
   */
  readonly begins?: boolean;
  /** An event is due that this process has not begun, so other processes are told. */
  readonly announce?: boolean;
}

/**
 * Computes a change of one record. A step must be synchronous and pure, since it may be computed several times. It gets a copy,
 * which it may change. If it throws, nothing is written, and only its caller gets the error. Unless it throws a `PayhooksError`, the
 * record counts as unreadable. `mayHaveBeenMade` is true if a write of this step was sent before and its outcome is unknown.
 */
export type Step<T> = (
  record: IdempotencyRecord | null,
  now: number,
  mayHaveBeenMade: boolean,
) => StepResult<T>;

/** A request to apply a step. */
export interface Asked<T> {
  readonly key: string;
  readonly step: Step<T>;
  /** How long the caller waits. After that, a write that has not been made is not tried again. */
  readonly deadlineMs: number;
  /**
   * A guess of what the store has. For a new event, the guess is null: there is no record. Without a guess, the step is
   * computed from what this process wrote last, or the store is asked first.
   */
  readonly guess?: Versioned | null | undefined;
  /** Called with the reason each time the store did not answer or make a write that will be tried again, or has been given up. */
  readonly onFailure?: ((cause: unknown) => void) | undefined;
  /** Called once. `version` is that of the record that the answer is about; null if there is no record. */
  readonly settle: (outcome: Outcome<T>) => void;
}

/** The answer of a step, or why there is none. */
export type Outcome<T> =
  | { readonly ok: true; readonly answer: T; readonly version: string | null }
  | { readonly ok: false; readonly error: unknown };

/** A record as the store has it, with its index if this process has computed it. */
interface Known extends Versioned {
  readonly index?: RecordIndex;
}

/** A step under way. */
interface Pending {
  readonly asked: Asked<unknown>;
  /** On the monotonic clock. */
  readonly until: number;
  computed: { readonly ok: true; readonly answer: unknown } | { readonly ok: false; readonly error: unknown };
  /** A write of this step was sent, and nobody knows whether it was made. */
  mayHaveBeenMade: boolean;
}

/** Steps that wait because another write of their record is under way. */
interface Line {
  waiting: Pending[];
}

const AGAIN_MIN_MS = 20;
const AGAIN_MAX_MS = 500;
const NOT_COMPUTED = { ok: false, error: null } as const;

/**
 * Changes records by compare-and-swap. For each record, at most one write of this process is under way. Steps that are
 * requested in the meantime are computed in their order, and together make the next write.
 */
export class Changes {
  readonly #store: BatchedStore;
  readonly #environment: Environment;
  readonly #leaseMs: number;
  readonly #lines = new InFlight<string, Line>();
  /** The last known state of each record that this process holds. */
  readonly #held = new InFlight<string, { last: Known | null }>();

  /** @param written called for each write that the store has confirmed */
  constructor(
    store: RecordStore,
    environment: Environment,
    leaseMs: number,
    written: (item: Swap) => void = () => {},
  ) {
    this.#store = new BatchedStore(store, environment, written);
    this.#environment = environment;
    this.#leaseMs = leaseMs;
  }

  /** Remembers the last state of a record that will be written again soon, until {@link release}. */
  hold(key: string): void {
    if (this.#held.get(key) === undefined) this.#held.set(key, { last: null });
  }

  release(key: string): void {
    this.#held.delete(key);
  }

  /** Leaves the store alone from now on. Steps that are still under way fail with `ERR_CLOSING`, or with what had delayed them. */
  close(): void {
    this.#store.close();
  }

  ask<T>(asked: Asked<T>): void {
    const until = this.#environment.monotonic() + asked.deadlineMs;
    const pending: Pending = {
      asked: asked as Asked<unknown>,
      until,
      computed: NOT_COMPUTED,
      mayHaveBeenMade: false,
    };
    const line = this.#lines.get(asked.key);
    if (line !== undefined) {
      line.waiting.push(pending);
      return;
    }
    this.#lines.set(asked.key, { waiting: [] });
    const guess = asked.guess === undefined ? this.#held.get(asked.key)?.last : asked.guess;
    if (guess === undefined || (guess === null && asked.guess === undefined)) this.#readFor([pending]);
    else this.#compute([pending], guess, false);
  }

  /** Like {@link ask}, but returns a promise. */
  change<T>(asked: Omit<Asked<T>, "settle">): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (outcome: Outcome<T>): void => {
        if (outcome.ok) resolve(outcome.answer);
        else reject(outcome.error);
      };
      this.ask({ ...asked, settle });
    });
  }

  /** `isRead`: `base` was read after all of these steps were requested. An answer may then rest on it without a write. */
  #compute(asked: readonly Pending[], base: Known | null, isRead: boolean, failures = 0): void {
    const [first] = asked;
    if (first === undefined) return;
    const { key } = first.asked;
    if (base !== null && isUnreadable(base.record)) {
      this.#fail(asked, key, unreadable(base.record.unreadable));
      return;
    }
    let now: number;
    try {
      now = this.#store.now(key);
    } catch (error) {
      this.#tryAgain(asked, base, key, error, failures);
      return;
    }
    const stored = base === null ? null : (base.record as IdempotencyRecord);
    let record: IdempotencyRecord | null = stored;
    let isChanged = false;
    let begins = false;
    let announce = false;
    let computed = 0;
    for (const pending of asked) {
      // A step after the one that begins a run could take its lease away. The run would be started all the same.
      if (begins) break;
      computed++;
      try {
        const result = pending.asked.step(
          record === null ? null : copyRecord(record),
          now,
          pending.mayHaveBeenMade,
        );
        pending.computed = { ok: true, answer: result.answer };
        if (result.record === null) continue;
        record = result.record;
        isChanged = true;
        begins ||= result.begins === true;
        announce ||= result.announce === true;
      } catch (error) {
        pending.computed = { ok: false, error: isPayhooksError(error) ? error : brokenBy(error) };
      }
    }
    const group = computed === asked.length ? asked : asked.slice(0, computed);
    if (group !== asked) this.#lines.get(key)?.waiting.unshift(...asked.slice(computed));
    if (!isChanged || record === null) {
      if (isRead) this.#settle(group, key, base);
      else this.#readFor(group);
      return;
    }
    let index: RecordIndex;
    let before: RecordIndex | null;
    try {
      index = indexOf(key, record);
      before = stored === null ? null : (base?.index ?? indexOf(key, stored));
    } catch (error) {
      this.#fail(group, key, brokenBy(error));
      return;
    }
    const version = this.#environment.token();
    const expected = base?.version ?? null;
    const item: Swap = { key, expected, version, record, index, before, at: now, announce };
    this.#write(group, base, item, begins ? this.#environment.monotonic() + this.#leaseMs : null, failures);
  }

  /**
   * `leaseEnd`: until when to send a write that begins a run again; null for any other write. `isUnclear`: the same write was
   * sent before, and may have been made then.
   */
  #write(
    group: readonly Pending[],
    base: Known | null,
    item: Swap,
    leaseEnd: number | null,
    failures: number,
    isUnclear = false,
  ): void {
    const { key, version, record, index } = item;
    // The store may still make the write that was sent. Only sending the same write again can tell.
    const sendAgain = (cause: unknown): void => {
      tell(group, cause);
      const limit = leaseEnd ?? Math.max(...group.map(({ until }) => until));
      if (this.#isOver(limit)) this.#fail(group, key, cause);
      else this.#later(failures, () => this.#write(group, base, item, leaseEnd, failures + 1, true));
    };
    this.#store.write(item, (result) => {
      switch (result.kind) {
        case "written":
          this.#settle(group, key, { version, record, index });
          return;
        case "conflict":
          // The same write arrived twice. The second one finds what the first one wrote.
          if (result.current?.version === version) this.#settle(group, key, { version, record, index });
          // Computed again, the step may find nothing to write: the earlier write was made, or the lease is lost.
          else if (isUnclear || failures === 0) this.#compute(group, result.current, true, failures + 1);
          else this.#computeAgain(group, item, result.current, failures);
          return;
        case "refused":
          this.#refuse(group, base, key, result.cause);
          return;
        case "not-written":
          // That says nothing about an earlier sending of the same write.
          if (isUnclear) sendAgain(result.cause);
          else this.#tryAgain(group, base, key, result.cause, failures);
          return;
        case "unknown":
          for (const pending of group) pending.mayHaveBeenMade = true;
          sendAgain(result.cause);
      }
    });
  }

  /**
   * The store has refused the write, and not for the first time. Another process was faster, or the store's clock does not
   * agree with the time of the write. The attempts have to end at some time: a store with a wrong clock would be asked forever.
   */
  #computeAgain(
    group: readonly Pending[],
    { key, expected }: Swap,
    current: Versioned | null,
    failures: number,
  ): void {
    const isOfAnotherTime = (current?.version ?? null) === expected;
    if (isOfAnotherTime) tell(group, ofAnotherTime());
    const rest = this.#inTime(group, isOfAnotherTime ? ofAnotherTime() : overtakenByOthers());
    if (rest.length === 0) this.#next(key, current);
    else if (!isOfAnotherTime) this.#compute(rest, current, true, failures + 1);
    else this.#later(failures - 1, () => this.#compute(rest, current, true, failures + 1));
  }

  /** One of several steps in a write may be the reason why it was refused. So each step is tried in a write of its own. */
  #refuse(group: readonly Pending[], base: Known | null, key: string, cause: unknown): void {
    const [first, ...others] = group;
    if (first === undefined) return;
    if (others.length === 0) {
      this.#fail(group, key, cause);
      return;
    }
    const line = this.#lines.get(key);
    line?.waiting.unshift(...others);
    this.#compute([first], base, false);
  }

  /** Nothing was written. Steps whose callers still wait are computed again. */
  #tryAgain(
    group: readonly Pending[],
    base: Known | null,
    key: string,
    cause: unknown,
    failures: number,
  ): void {
    tell(group, cause);
    const rest = this.#inTime(group, cause);
    if (rest.length === 0) this.#next(key, base);
    else this.#later(failures, () => this.#compute(rest, base, false, failures + 1));
  }

  /** The steps whose callers still wait. The callers of the others get the reason. */
  #inTime(group: readonly Pending[], cause: unknown): readonly Pending[] {
    const rest: Pending[] = [];
    for (const pending of group) {
      if (this.#isOver(pending.until)) pending.asked.settle({ ok: false, error: cause });
      else rest.push(pending);
    }
    return rest;
  }

  /** True if nothing is to be tried after a time on the monotonic clock, or at all. */
  #isOver(until: number): boolean {
    return this.#store.isClosed || this.#environment.monotonic() >= until;
  }

  #later(failures: number, task: () => void): void {
    this.#environment.after(Math.min(AGAIN_MIN_MS * 2 ** failures, AGAIN_MAX_MS), task);
  }

  #settle(group: readonly Pending[], key: string, state: Known | null): void {
    const held = this.#held.get(key);
    if (held !== undefined) held.last = state;
    const version = state?.version ?? null;
    for (const { asked, computed } of group) {
      asked.settle(computed.ok ? { ok: true, answer: computed.answer, version } : computed);
    }
    this.#next(key, state);
  }

  #fail(group: readonly Pending[], key: string, error: unknown): void {
    const held = this.#held.get(key);
    if (held !== undefined) held.last = null;
    for (const { asked } of group) asked.settle({ ok: false, error });
    const line = this.#lines.get(key);
    const waiting = line?.waiting ?? [];
    if (line !== undefined && waiting.length > 0) {
      line.waiting = [];
      this.#readFor(waiting);
    } else this.#lines.delete(key);
  }

  /** Computes the steps that were requested in the meantime. */
  #next(key: string, state: Known | null): void {
    const line = this.#lines.get(key);
    if (line === undefined) return;
    const { waiting } = line;
    if (waiting.length === 0) {
      this.#lines.delete(key);
      return;
    }
    line.waiting = [];
    this.#compute(waiting, state, false);
  }

  #readFor(group: readonly Pending[], failures = 0): void {
    const [first] = group;
    if (first === undefined) return;
    const { key } = first.asked;
    this.#store.read(key, (outcome) => {
      if (!("error" in outcome)) {
        this.#compute(group, outcome.current, true);
        return;
      }
      tell(group, outcome.error);
      const rest = this.#inTime(group, outcome.error);
      if (rest.length > 0) this.#later(failures, () => this.#readFor(rest, failures + 1));
      else this.#fail([], key, outcome.error);
    });
  }
}

function tell(group: readonly Pending[], cause: unknown): void {
  for (const { asked } of group) asked.onFailure?.(cause);
}

function ofAnotherTime(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    "The store refuses writes that are dated by its own clock. Nothing was written.",
    {
      fix: "Does its clock jump? A store's now() must never be ahead of the clock by which its swap judges.",
    },
  );
}

function overtakenByOthers(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    "Other processes kept changing the record for as long as the caller waited. Nothing was written.",
    { fix: "Try again." },
  );
}

const aboutRecords = new WeakSet<object>();

/** The error for a record that cannot be read. Its events wait until somebody has repaired the record or updated Payhooks. */
export function unreadable(why: string): PayhooksError {
  const error = new PayhooksError("ERR_INBOX_UNAVAILABLE", `A record cannot be read: ${why}.`, {
    fix: "Is a newer version of Payhooks running on the same data? Update every process to it. Otherwise restore the data from a backup.",
  });
  aboutRecords.add(error);
  return error;
}

/** True for {@link unreadable}: to try again is no use, since it is the record that is at fault, and not the store. */
export function isAboutRecord(error: unknown): boolean {
  return typeof error === "object" && error !== null && aboutRecords.has(error);
}

/** A step has thrown on a record whose fields are all as they must be. */
function brokenBy(error: unknown): PayhooksError {
  return unreadable(`it has been changed to something that no step expects (${describeError(error)})`);
}
