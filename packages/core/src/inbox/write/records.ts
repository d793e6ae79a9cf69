/**
 * Every change of a record goes this way: read, compute, swap, and again if another process was faster. Changes of one
 * record that are asked for in this process are made one after the other.
 *
 * 1. The change is computed from the record as it is known: a guess (for a new event: there is none), the version that
 *   this process has read or written last, or the version in the store. If nothing has to be written, that is the
 *   answer, provided that the version was read after the change was asked for.
 * 2. Otherwise the store swaps the known record for the next one, and says what became of the write:
 *
 *    | the store says | what follows                                                                                     |
 *    | -------------- | ------------------------------------------------------------------------------------------------ |
 *    | written        | the change is made                                                                               |
 *    | conflict       | it is computed again, from the record that is there now: see {@link decideAfterConflict}               |
 *    | not-written    | it is tried again after a pause                                                                  |
 *    | unknown        | the same write is sent again, unchanged, until the store answers; nothing else shows the outcome |
 *    | refused        | the change fails                                                                                 |
 *
 * 3. A write whose outcome was unknown may have been made, and overwritten since. Then the change is computed once more with
 *    `mayHaveBeenMade`, and finds its own traces in the record.
 * 4. Attempts end at the caller's deadline, or at a close. A write that begins a run is sent until its lease would be
 *   over, because a run that was begun has to run.
 */

import { FifoQueue } from "../../collections/fifo-queue.ts";
import { InFlightMap } from "../../collections/in-flight-map.ts";
import { isPayhooksError, PayhooksError } from "../../protocol/errors.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { sleep } from "../../time/clock.ts";
import type { Environment } from "../../time/environment.ts";
import type { RecordStore, Swap, SwapResult, VersionedRecord } from "../contract/store.ts";
import { copyRecord, isUnreadable, type UnreadableRecord } from "../record/codec.ts";
import { indexOf, type RecordIndex } from "../record/index-of.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import { BatchedStore } from "./batched-store.ts";

/** The result of a change that was computed. */
export interface ComputedChange<T> {
  readonly answer: T;
  /** The record to write; null if the stored one stays as it is. */
  readonly record: IdempotencyRecord | null;
  /**
   * The write begins a run. If its outcome is unknown, the same write is sent again until the lease ends, because a run
   * that was begun has to run.
   */
  readonly isBegin?: boolean;
  /** An event is due that this process has not begun, so the store announces it to other processes. */
  readonly shouldAnnounce?: boolean;
}

/**
 * Computes a change of one record. The function must be synchronous and pure, because it may be computed several times.
 * It gets a copy, which it may change. If it throws, nothing is written. Unless it throws a `PayhooksError`, the record
 * counts as unreadable. `mayHaveBeenMade` is true if a write of this change was sent before and its outcome is unknown.
 */
export type RecordChange<T> = (
  record: IdempotencyRecord | null,
  now: number,
  mayHaveBeenMade: boolean,
) => ComputedChange<T>;

export interface ChangeRequest<T> {
  readonly key: string;
  readonly change: RecordChange<T>;
  /** How long the caller waits. After that, a write that has not been made is not tried again. */
  readonly deadlineMs: number;
  /**
   * A guess of the record in the store. For a new event, the guess is null: there is no record. Without a guess, the change is
   * computed from the record that this process wrote last, or the store is asked first.
   */
  readonly guess?: VersionedRecord | null | undefined;
  /** Called with the reason each time the store did not answer or make a write that will be tried again, or has been given up. */
  readonly onFailure?: ((cause: unknown) => void) | undefined;
}

export interface ChangeResult<T> {
  readonly answer: T;
  /** The version of the record that the answer is about; null if there is no record. */
  readonly version: string | null;
}

/** A record as the store has it, with its index if this process has computed it. */
interface IndexedRecord extends VersionedRecord {
  readonly index?: RecordIndex;
}

/** A record as the request with this number has seen it. Null: there was no such record. */
interface SeenRecord {
  readonly storedRecord: IndexedRecord | null;
  readonly requestNumber: number;
}

/** A record that this process is changing, or will change again soon. */
interface CachedRecord {
  /** Null: not known. */
  seen: SeenRecord | null;
  isRemembered: boolean;
  /** A change is under way. The others wait for their turn. */
  isBusy: boolean;
  readonly waiting: FifoQueue<() => void>;
  /** Why the last change failed; null if it did not. */
  failure: unknown;
}

/** A guess is older than any request. */
const GUESS_NUMBER = 0;
const RETRY_MIN_PAUSE_MS = 20;
const RETRY_MAX_PAUSE_MS = 500;

/** Changes records by compare-and-swap. */
export class Records {
  readonly #store: BatchedStore;
  readonly #environment: Environment;
  readonly #leaseMs: number;
  readonly #cached = new InFlightMap<string, CachedRecord>();
  /** Numbers the changes that are asked for and the requests to the store, in one order. */
  #lastNumber = GUESS_NUMBER;

  /** @param onWritten called for each write that the store has confirmed */
  constructor(
    store: RecordStore,
    environment: Environment,
    leaseMs: number,
    onWritten: (item: Swap) => void = () => {},
  ) {
    this.#store = new BatchedStore(store, environment, onWritten);
    this.#environment = environment;
    this.#leaseMs = leaseMs;
  }

  /** Remembers the last state of a record that will be written again soon, until {@link forget}. */
  remember(key: string): void {
    this.#cachedOf(key).isRemembered = true;
  }

  /** The record will not be written again soon. */
  forget(key: string): void {
    const cached = this.#cached.get(key);
    if (cached === undefined) return;
    cached.isRemembered = false;
    this.#forgetIfIdle(key, cached);
  }

  /**
   * Leaves the store alone from now on. Changes that are under way fail with `ERR_CLOSING`, or with the error that had
   * delayed them.
   */
  close(): void {
    this.#store.close();
  }

  async change<T>(request: ChangeRequest<T>): Promise<ChangeResult<T>> {
    const { key, guess } = request;
    const changeNumber = ++this.#lastNumber;
    const until = this.#environment.monotonic() + request.deadlineMs;
    const cached = this.#cachedOf(key);
    const isNext = !cached.isBusy;
    cached.isBusy = true;
    if (!isNext) await new Promise<void>((go) => cached.waiting.push(go));
    // The change before this one has seen a newer state than a guess.
    else if (guess !== undefined) cached.seen = { storedRecord: guess, requestNumber: GUESS_NUMBER };
    try {
      if (!isNext && cached.failure !== null && this.#isOver(until)) throw cached.failure;
      const result = await this.#apply(request, cached, changeNumber, until);
      cached.failure = null;
      return result;
    } catch (error) {
      cached.failure = error;
      cached.seen = null;
      throw error;
    } finally {
      this.#passTurn(key, cached);
    }
  }

  #cachedOf(key: string): CachedRecord {
    let cached = this.#cached.get(key);
    if (cached === undefined) {
      cached = {
        seen: null,
        isRemembered: false,
        isBusy: false,
        waiting: new FifoQueue(),
        failure: null,
      };
      this.#cached.set(key, cached);
    }
    return cached;
  }

  /** Gives the turn to the change that has waited longest. */
  #passTurn(key: string, cached: CachedRecord): void {
    const next = cached.waiting.shift();
    if (next !== undefined) {
      next();
      return;
    }
    cached.isBusy = false;
    this.#forgetIfIdle(key, cached);
  }

  #forgetIfIdle(key: string, cached: CachedRecord): void {
    if (!cached.isBusy && !cached.isRemembered) this.#cached.delete(key);
  }

  /** @param changeNumber the number of this change. An answer without a write may only rest on what was requested after it. */
  async #apply<T>(
    { key, change, onFailure }: ChangeRequest<T>,
    cached: CachedRecord,
    changeNumber: number,
    until: number,
  ): Promise<ChangeResult<T>> {
    let mayHaveBeenMade = false;
    let attempts = 0;
    const pause = async (cause: unknown, limit: number): Promise<void> => {
      onFailure?.(cause);
      if (this.#isOver(limit)) throw cause;
      await sleep(this.#environment, Math.min(RETRY_MIN_PAUSE_MS * 2 ** attempts++, RETRY_MAX_PAUSE_MS));
    };
    for (;;) {
      let now: number;
      try {
        cached.seen ??= await this.#read(key);
        now = this.#store.now(key);
      } catch (error) {
        await pause(error, until);
        continue;
      }
      const { storedRecord, requestNumber } = cached.seen;
      if (storedRecord !== null && isUnreadable(storedRecord.record))
        throw unreadableError(storedRecord.record);
      const computed = compute(change, storedRecord, now, mayHaveBeenMade);
      if (computed.record === null) {
        if (requestNumber > changeNumber)
          return { answer: computed.answer(), version: storedRecord?.version ?? null };
        cached.seen = null;
        continue;
      }
      const item = this.#buildSwap(key, storedRecord, computed.record, now, computed.shouldAnnounce);
      const sentNumber = ++this.#lastNumber;
      const limit = computed.isBegin ? this.#environment.monotonic() + this.#leaseMs : until;
      const result = await this.#send(item, (cause) => {
        mayHaveBeenMade = true;
        return pause(cause, limit);
      });
      const { version, record, index } = item;
      switch (result.kind) {
        case "written":
          cached.seen = { storedRecord: { version, record, index }, requestNumber: sentNumber };
          return { answer: computed.answer(), version };
        case "refused":
          throw result.cause;
        case "not-written":
          await pause(result.cause, until);
          break;
        case "conflict": {
          cached.seen = { storedRecord: result.current, requestNumber: sentNumber };
          const isFirst = attempts === 0 || result.isUnclear;
          const isClockRefusal = (result.current?.version ?? null) === item.expected;
          switch (decideAfterConflict(isFirst, isClockRefusal, this.#isOver(until))) {
            case "compute":
              attempts++;
              break;
            case "pause":
              await pause(clockRefusalError(), until);
              break;
            case "fail":
              throw contentionError();
          }
        }
      }
    }
  }

  async #read(key: string): Promise<SeenRecord> {
    const requestNumber = ++this.#lastNumber;
    return { storedRecord: await this.#store.read(key), requestNumber };
  }

  #buildSwap(
    key: string,
    storedRecord: IndexedRecord | null,
    record: IdempotencyRecord,
    at: number,
    shouldAnnounce: boolean,
  ): Swap & { readonly index: RecordIndex } {
    try {
      const index = indexOf(key, record);
      const before =
        storedRecord === null
          ? null
          : (storedRecord.index ?? indexOf(key, storedRecord.record as IdempotencyRecord));
      const version = this.#environment.token();
      return {
        key,
        expected: storedRecord?.version ?? null,
        version,
        record,
        index,
        before,
        at,
        shouldAnnounce,
      };
    } catch (error) {
      throw changeFailedError(error);
    }
  }

  /**
   * Sends a write until somebody knows whether it was made. The store may still make one that it did not answer, and only
   * sending the same write again can tell. `isUnclear`: that has happened, so the write may have been made and overwritten.
   */
  async #send(
    item: Swap,
    pause: (cause: unknown) => Promise<void>,
  ): Promise<Exclude<SwapResult, { kind: "unknown" }> & { readonly isUnclear: boolean }> {
    for (let isUnclear = false; ; ) {
      const result = await this.#store.write(item);
      // This write arrived twice. The second one finds what the first one wrote.
      if (result.kind === "conflict" && result.current?.version === item.version) {
        return { kind: "written", isUnclear };
      }
      if (result.kind === "unknown") isUnclear = true;
      // A write that was not made this time proves nothing about an earlier sending of the same write.
      else if (result.kind !== "not-written" || !isUnclear) return { ...result, isUnclear };
      await pause(result.cause);
    }
  }

  /** True if nothing is to be tried after a time on the monotonic clock, or at all. */
  #isOver(until: number): boolean {
    return this.#store.isClosed || this.#environment.monotonic() >= until;
  }
}

/** A change that was computed. `answer` throws if computing it did. */
interface ComputeResult<T>
  extends Required<Pick<ComputedChange<T>, "record" | "isBegin" | "shouldAnnounce">> {
  answer(): T;
}

function compute<T>(
  change: RecordChange<T>,
  storedRecord: VersionedRecord | null,
  now: number,
  mayHaveBeenMade: boolean,
): ComputeResult<T> {
  try {
    const copy = storedRecord === null ? null : copyRecord(storedRecord.record as IdempotencyRecord);
    const { answer, record, isBegin = false, shouldAnnounce = false } = change(copy, now, mayHaveBeenMade);
    return { answer: () => answer, record, isBegin, shouldAnnounce };
  } catch (error) {
    const answer = (): never => {
      throw changeErrorOf(error);
    };
    return { answer, record: null, isBegin: false, shouldAnnounce: false };
  }
}

/**
 * Decides what follows from a conflict. The first row that fits counts.
 *
 * | the conflict                                                         | the change is                         |
 * | -------------------------------------------------------------------- | ------------------------------------- |
 * | is the first one of the change, or the write may have been made      | computed again, and may be found made |
 * | shows a record that nobody has changed: the store refuses the time   | computed again after a pause          |
 * | shows that another process was faster, and there is time left        | computed again                        |
 * | shows that another process was faster, and the caller's time is over | given up                              |
 */
function decideAfterConflict(
  isFirst: boolean,
  isClockRefusal: boolean,
  isTimeOver: boolean,
): "compute" | "pause" | "fail" {
  if (isFirst) return "compute";
  if (isClockRefusal) return "pause";
  return isTimeOver ? "fail" : "compute";
}

function clockRefusalError(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    "The store refuses writes that are dated by its own clock. Nothing was written.",
    {
      fix: "Check whether its clock jumps. now() of a store must never be ahead of the clock that its swap() uses.",
    },
  );
}

function contentionError(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    "Other processes kept changing the record for as long as the caller waited. Nothing was written.",
    { fix: "Try again." },
  );
}

const recordErrors = new WeakSet<object>();

const DEFAULT_FIX =
  "If a newer version of Payhooks runs on the same data, update every process to it. Otherwise restore the data from a backup.";
const SEAL_FIXES = {
  ERR_SEAL_KEY_MISSING: "Give the inbox `seal: aesGcm([…])` with this key. Until then, its events wait.",
  ERR_SEAL_BROKEN:
    "Somebody has changed the record in the database, moved it, or given another key this id. Restore the record, or the key.",
};

/** The error for a record that cannot be read. Its events wait until somebody has repaired the record or updated Payhooks. */
export function unreadableError({ unreadable: reason, code }: UnreadableRecord): PayhooksError {
  const message = `A record cannot be read: ${reason}.`;
  const fix = code === undefined ? DEFAULT_FIX : SEAL_FIXES[code];
  const cause = code === undefined ? undefined : new PayhooksError(code, message, { fix });
  const error = new PayhooksError("ERR_INBOX_UNAVAILABLE", message, { fix, cause });
  recordErrors.add(error);
  return error;
}

/** True for {@link unreadableError}. Trying again does not help, because the record is at fault and not the store. */
export function isRecordError(error: unknown): error is PayhooksError {
  return typeof error === "object" && error !== null && recordErrors.has(error);
}

/** The error of a change that has thrown. If it did not mean to, the record is at fault. */
export function changeErrorOf(error: unknown): PayhooksError {
  return isPayhooksError(error) ? error : changeFailedError(error);
}

/** A change has thrown on a record whose fields are all as they must be. */
function changeFailedError(error: unknown): PayhooksError {
  return unreadableError({
    unreadable: `its fields contradict each other (${describeError(error)})`,
  });
}
