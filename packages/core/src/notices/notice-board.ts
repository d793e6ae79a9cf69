import { emptyContext } from "../time/async-context.ts";
import { isThenable } from "../time/awaitable.ts";
import type { Clock } from "../time/clock.ts";
import { type Environment, environmentOf, ON_WORKERS } from "../time/environment.ts";
import { Limiter } from "./limiter.ts";
import type { LogLines } from "./log-lines.ts";
import type { Notice, UndatedNotice } from "./notice.ts";
import { lineOfThrown } from "./thrown.ts";

/** How many notices may wait for a slow observer. Further ones are dropped and counted. */
const MAX_PENDING_NOTICES = 10_000;

/** Equal errors of a store within this time become one notice, with their count. */
const EQUAL_ERRORS_MS = 10_000;

type InboxError = Extract<UndatedNotice, { readonly type: "inbox-error" }>;

/**
 * Takes notices during a delivery, and hands them to observers afterwards. So an observer can neither slow down nor break a
 * delivery.
 */
export class NoticeBoard {
  readonly #lines: LogLines;
  readonly #clock: Clock;
  readonly #nextTurn: (task: () => void) => void;
  readonly #inboxErrors: Limiter<InboxError>;
  /** One entry for each call of `observe`, even with the same function. */
  readonly #observers = new Set<{ readonly observer: (notice: Notice) => void }>();
  #watcher: ((notice: UndatedNotice) => void) | null = null;
  #pending: Notice[] = [];
  #droppedCount = 0;
  #isScheduled = false;

  constructor(lines: LogLines, clock: Clock | Environment) {
    this.#lines = lines;
    this.#clock = clock;
    this.#nextTurn = ON_WORKERS ? inNextMicrotask : environmentOf(clock).nextTurn;
    const pass = (error: InboxError): void => this.#add(error);
    const passSummary = (latestSuppressed: InboxError, count: number): void =>
      pass({ ...latestSuppressed, count });
    this.#inboxErrors = new Limiter({
      clock,
      periodMs: EQUAL_ERRORS_MS,
      summaryCounts: true,
      pass,
      passSummary,
    });
  }

  /** False if there is no observer for notices about successes. Then they need not even be made. */
  get isObserved(): boolean {
    return this.#observers.size > 0 || this.#lines.writesSuccesses;
  }

  /** Adds an observer. The returned function removes it. */
  observe(observer: (notice: Notice) => void): () => void {
    const entry = { observer };
    this.#observers.add(entry);
    return () => void this.#observers.delete(entry);
  }

  /** Sets the one function that is called at once with each notice, before equal errors are gathered. It must not throw. */
  watch(watcher: (notice: UndatedNotice) => void): void {
    this.#watcher = watcher;
  }

  post(notice: UndatedNotice): void {
    this.#watcher?.(notice);
    if (this.#observers.size === 0 && !this.#lines.isWritten(notice)) return;
    if (notice.type === "inbox-error") {
      const { during, error, count } = notice;
      this.#inboxErrors.add(`${during}\n${error}`, notice, 1, count);
    } else this.#add(notice);
  }

  #add(notice: UndatedNotice): void {
    if (this.#pending.length >= MAX_PENDING_NOTICES) {
      this.#droppedCount++;
      return;
    }
    this.#pending.push({ ...notice, at: this.#clock.now() });
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#nextTurn(() => this.flush());
  }

  /** Hands out the notices that wait. */
  flush(): void {
    this.#isScheduled = false;
    const batch = this.#pending;
    this.#pending = [];
    for (const notice of batch) {
      for (const { observer } of this.#observers) {
        this.#notify(observer, notice);
      }
      this.#lines.write(notice);
    }
    if (this.#droppedCount > 0) {
      const droppedCount = this.#droppedCount;
      this.#droppedCount = 0;
      this.#lines.logDroppedNotices(droppedCount);
    }
  }

  /** An observer may be an async function. Its errors are logged: they neither break a delivery nor end the process. */
  #notify(observer: (notice: Notice) => unknown, notice: Notice): void {
    const logError = (error: unknown): void => this.#lines.logObserverError(lineOfThrown(error));
    try {
      const result = emptyContext.run(() => observer(notice));
      if (isThenable(result)) result.then(undefined, logError);
    } catch (error) {
      logError(error);
    }
  }

  /** Hands out the notices that wait, and writes the last lines. */
  close(): void {
    this.#inboxErrors.close();
    this.flush();
    this.#lines.close();
  }
}

function inNextMicrotask(task: () => void): void {
  queueMicrotask(() => emptyContext.run(task));
}
