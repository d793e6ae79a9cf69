import { inboxError } from "../notices/notice.ts";
import type { Environment } from "../time/environment.ts";
import type { Acts } from "./acts.ts";
import type { Runner } from "./inbox.ts";
import { isUnreadable } from "./record/codec.ts";
import type { DueRecord, RecordStore } from "./store.ts";

/** What a dispatcher takes from its inbox. */
export interface DispatcherParts {
  readonly store: RecordStore;
  readonly environment: Environment;
  readonly acts: Acts;
  /** For how long a record that was taken is hidden from others. */
  readonly hideMs: number;
  /** The dispatcher looks at least this often; `Infinity` if no other process can add events. */
  readonly pollMs: number;
  readonly runner: Runner;
  /** How many events may be begun now. */
  room(): number;
  /** Begins the next event of a record that the store handed out. */
  begin(record: DueRecord): void;
}

/** How long to wait after a failed look, or `pollMs` if that is shorter. The next look never comes earlier. */
const AGAIN_MS = 500;
/** How long to wait if something is due, but nothing was handed out: another session of the database has the records locked. */
const LOCKED_MS = 50;
/**
 * After a look that found nothing, a hint causes no other one for so long. Hints come from outside, and each of them may go to
 * many processes, of which one finds the event.
 */
const HINT_FLOOR_MS = 50;
/**
 * How much later a process looks once it has been given a record that it cannot read. During a deploy, a process of the newer
 * version is to be the first that looks when the record falls due again.
 */
const YIELD_MS = 100;

/**
 * Looks for events that are due, and begins them. It looks every `pollMs`, when the next record falls due, when another
 * process announces something, and when a place becomes free after a look that found more events than places.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts;
  #stopped = false;
  #paused = false;
  #looking: Promise<void> | null = null;
  /** Something was announced while a look was under way, so another look follows. */
  #lookAgain = false;
  /** A hint came while a look was under way. */
  #isHinted = false;
  /** No hint causes a look before this time (monotonic clock). */
  #hintsFrom = Number.NEGATIVE_INFINITY;
  #isBacklog = false;
  /** This process has been given a record that only a newer version can read. */
  #isOutdated = false;
  #cancelTimer: (() => void) | null = null;
  /** After a failed look no announcement causes another one before this time (monotonic clock). */
  #notBefore = Number.NEGATIVE_INFINITY;
  /** When the timer fires, on the monotonic clock. */
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** True if the last look found more events than places. Those that wait go before new ones. */
  get isBacklog(): boolean {
    return this.#isBacklog;
  }

  get isTaking(): boolean {
    return !this.#stopped && !this.#paused;
  }

  /** An event falls due in `inMs` milliseconds. */
  wake(inMs: number): void {
    if (!this.isTaking) return;
    const { environment } = this.#parts;
    const now = environment.monotonic();
    const at = Math.max(now + inMs, this.#notBefore);
    if (at <= now) {
      this.#look();
      return;
    }
    if (at >= this.#timerAt) return;
    this.#cancelTimer?.();
    this.#timerAt = at;
    this.#cancelTimer = environment.after(at - now, () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#cancelTimer = null;
      this.#look();
    });
  }

  /** This process has accepted an event without beginning it. The event falls due in `inMs` milliseconds. */
  added(inMs: number): void {
    if (inMs > 0 || this.#parts.room() > 0) this.wake(inMs);
    else this.#isBacklog = true;
  }

  /** Another process has announced an event. Returns false if there is no place for it here. */
  hinted(): boolean {
    if (!this.isTaking || this.#parts.room() === 0) return false;
    if (this.#looking === null) this.#wakeForHint();
    else this.#isHinted = true;
    return true;
  }

  #wakeForHint(): void {
    this.#isHinted = false;
    this.wake(Math.max(0, this.#hintsFrom - this.#parts.environment.monotonic()));
  }

  /** A place has become free. */
  freed(): void {
    if (this.#isBacklog) this.wake(0);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.wake(0);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
  }

  /** Looks in a later turn, so that the caller does not wait for it. */
  #look(): void {
    if (this.#looking !== null) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = new Promise((resolve) => {
      this.#parts.environment.soon(() => void this.#lookOnce().then(resolve));
    });
  }

  /** Resolves once no look is under way. */
  async atRest(): Promise<void> {
    await this.#looking;
  }

  async #lookOnce(): Promise<void> {
    const { store, hideMs, pollMs, runner, begin, room } = this.#parts;
    let nextMs = pollMs;
    this.#lookAgain = false;
    try {
      if (!this.isTaking) return;
      const limit = room();
      if (limit === 0) {
        // There may be events. The next place that becomes free looks again.
        this.#isBacklog = true;
        return;
      }
      const { records, left, nextDueAt } = await store.takeDue(limit, hideMs);
      this.#isBacklog = left > 0;
      if (records.length === 0) this.#hintsFrom = this.#parts.environment.monotonic() + HINT_FLOOR_MS;
      if (records.some(({ record }) => isUnreadable(record))) this.#isOutdated = true;
      for (const record of records) begin(record);
      if (left > 0 && room() > 0) {
        if (records.length > 0) this.#lookAgain = true;
        else nextMs = Math.min(pollMs, LOCKED_MS);
      }
      if (nextDueAt !== null) {
        const dueInMs = Math.max(1, nextDueAt - store.now(""));
        nextMs = Math.min(nextMs, this.#isOutdated ? dueInMs + YIELD_MS : dueInMs);
      }
    } catch (error) {
      this.#parts.acts.canaryFailed("take", error);
      runner.notify(inboxError("take", error));
      nextMs = Math.min(pollMs, AGAIN_MS);
      this.#notBefore = this.#parts.environment.monotonic() + nextMs;
    } finally {
      this.#looking = null;
      if (this.#isHinted) this.#wakeForHint();
      if (this.#lookAgain) this.wake(0);
      else if (nextMs !== Number.POSITIVE_INFINITY) this.wake(nextMs);
    }
  }
}
