import type { Environment } from "../environment.ts";
import { inboxError } from "../notices.ts";
import type { Runner } from "./inbox.ts";
import type { DueRecord, RecordStore } from "./store.ts";

/** What a dispatcher takes from its inbox. */
export interface DispatcherParts {
  readonly store: RecordStore;
  readonly environment: Environment;
  /** For how long a record that was taken is hidden from others. */
  readonly hideMs: number;
  /** The look comes at least this often; `Infinity` where nobody else can add anything. */
  readonly pollMs: number;
  readonly runner: Runner;
  /** How many events may be begun now. */
  room(): number;
  /** Begins what is next of a record that the store handed out. */
  begin(record: DueRecord): void;
}

/** After a look that failed the next one comes no later than this. */
const AGAIN_MS = 500;

/**
 * Looks for what is due and has it begun: every `pollMs`, when the next record falls due, when somebody says that
 * something is due, and when a place becomes free while more was due than there were places.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts;
  #stopped = false;
  #paused = false;
  #looking = false;
  /** Somebody has said that something is due while a look was under way. */
  #lookAgain = false;
  #isBacklog = false;
  #cancelTimer: (() => void) | null = null;
  /** When the timer fires, on the monotonic clock. */
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** The last look left something due for lack of places: what has waited goes before what arrives. */
  get isBacklog(): boolean {
    return this.#isBacklog;
  }

  get isTaking(): boolean {
    return !this.#stopped && !this.#paused;
  }

  /** Something is due in so many milliseconds. */
  wake(inMs: number): void {
    if (!this.isTaking) return;
    if (inMs <= 0) {
      this.#look();
      return;
    }
    const { environment } = this.#parts;
    const at = environment.monotonic() + inMs;
    if (at >= this.#timerAt) return;
    this.#cancelTimer?.();
    this.#timerAt = at;
    this.#cancelTimer = environment.after(inMs, () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#cancelTimer = null;
      this.#look();
    });
  }

  /** This process has accepted something that it did not begin, due in so many milliseconds. */
  added(inMs: number): void {
    if (inMs > 0 || this.#parts.room() > 0) this.wake(inMs);
    else this.#isBacklog = true;
  }

  /** Another process has said that something is due. False: there is no place for it here. */
  hinted(): boolean {
    if (!this.isTaking || this.#parts.room() === 0) return false;
    this.wake(0);
    return true;
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

  /** Off the path of whoever woke it. */
  #look(): void {
    if (this.#looking) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = true;
    this.#parts.environment.soon(() => void this.#lookOnce());
  }

  async #lookOnce(): Promise<void> {
    const { store, hideMs, pollMs, runner, begin, room } = this.#parts;
    let nextMs = pollMs;
    this.#lookAgain = false;
    try {
      if (!this.isTaking) return;
      const limit = room();
      if (limit === 0) {
        // There may be something: the next place that becomes free asks for it.
        this.#isBacklog = true;
        return;
      }
      const { records, left, nextDueAt } = await store.takeDue(limit, hideMs);
      this.#isBacklog = left > 0;
      for (const record of records) begin(record);
      if (left > 0 && room() > 0) this.#lookAgain = true;
      if (nextDueAt !== null) nextMs = Math.min(pollMs, Math.max(1, nextDueAt - store.now("")));
    } catch (error) {
      runner.notify(inboxError("take", error));
      nextMs = Math.min(pollMs, AGAIN_MS);
    } finally {
      this.#looking = false;
      if (this.#lookAgain) this.wake(0);
      else if (nextMs !== Number.POSITIVE_INFINITY) this.wake(nextMs);
    }
  }
}
