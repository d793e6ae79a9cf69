import type { Awaitable } from "../awaitable.ts";
import { Cancellation } from "../cancellation.ts";
import { type Stopwatch, sleep } from "../clock.ts";
import { inboxError, type Notice } from "../notices.ts";
import type { Step } from "./changes.ts";
import {
  type Accepted,
  factsOf,
  type Inbox,
  type Lease,
  type LeaseData,
  type RunEnd,
  type Runner,
  type StepChange,
  type VerifiedEvent,
} from "./inbox.ts";
import type { InboxParts } from "./parts.ts";
import type { IdempotencyRecord } from "./record/record.ts";
import { type Finished, finish, renew, writeSteps } from "./record/run.ts";

/** Adds to the step that ends a run, in the same write: what runs next. */
export interface Chain {
  readonly step: Step<void>;
  /** What it began is there: the write was made before, and only its answer got lost. */
  isMade(record: IdempotencyRecord | null): boolean;
}

const REPEAT_MIN_MS = 100;
const REPEAT_MAX_MS = 5_000;

/** A run in progress. */
export class ActiveRun implements Lease {
  readonly data: LeaseData;
  readonly cancellation: Cancellation = new Cancellation();
  readonly #runner: Runner;
  readonly #parts: InboxParts;
  readonly #accept: Inbox["accept"];
  /** Runs since the write that made or renewed the lease was sent. */
  #leased: Stopwatch;
  #called = false;
  #lost = false;
  #renewing = false;
  /** Its end is being written: from then on only the answer to that tells whether the lease was lost. */
  #ending = false;

  constructor(
    data: LeaseData,
    leased: Stopwatch,
    runner: Runner,
    parts: InboxParts,
    accept: Inbox["accept"],
  ) {
    this.data = data;
    this.#leased = leased;
    this.#runner = runner;
    this.#parts = parts;
    this.#accept = accept;
  }

  /** A handler was called: if nobody learns how it ended, its effect may come twice. */
  get wasCalled(): boolean {
    return this.#called;
  }

  mayCall(): ReturnType<Lease["mayCall"]> {
    if (this.#lost || this.#leased.elapsedMs >= this.#parts.leaseMs) return "lost";
    const { isClosing, store } = this.#parts;
    return isClosing && store.endsWithProcess !== true ? "hand-back" : "yes";
  }

  called(): void {
    this.#called = true;
  }

  accept(event: VerifiedEvent): Awaitable<Accepted> {
    return this.#accept(event);
  }

  async write(changes: readonly StepChange[]): Promise<boolean> {
    if (this.#lost) return false;
    const holds = await this.#persist("step", (record, now) => {
      const answer = writeSteps(record, this.data, changes, now);
      return { answer, record: answer ? record : null };
    });
    if (holds !== true) this.#lose();
    return holds === true;
  }

  /** Writes how the run ended, and what `chain` adds. Null: the lease was lost, and nothing was written. */
  async finish({ ending, changes }: RunEnd, chain: Chain): Promise<Finished | null> {
    this.#ending = true;
    let made: Finished = { kind: "lost" };
    const finished = await this.#persist<Finished>("finish", (record, now) => {
      if (chain.isMade(record)) return { answer: made, record: null };
      made = finish(record, this.data, ending, changes, now);
      if (made.kind === "lost") return { answer: made, record: null };
      const { begins = false, announce = false } = chain.step(record, now);
      return { answer: made, record, begins, announce };
    });
    if (finished?.kind === "ended") return finished;
    this.#lose();
    return null;
  }

  /** What a handler has come to is kept while the store is down, and the write repeated: the handler is not. */
  async #persist<T>(during: string, step: Step<T>): Promise<T | null> {
    const { changes, environment, leaseMs } = this.#parts;
    for (let delayMs = REPEAT_MIN_MS; ; delayMs = Math.min(delayMs * 2, REPEAT_MAX_MS)) {
      if (this.#parts.isAbandoned) return null;
      try {
        return await changes.change({ key: this.data.key, step, deadlineMs: leaseMs });
      } catch (error) {
        this.#runner.notify(inboxError(during, error));
        await sleep(environment, delayMs);
      }
    }
  }

  /** Called every third of a lease. */
  async renew(): Promise<void> {
    if (this.#lost || this.#renewing || this.#ending) return;
    this.#renewing = true;
    const { changes, leaseMs } = this.#parts;
    let sent = this.#leased;
    try {
      const holds = await changes.change({
        key: this.data.key,
        deadlineMs: leaseMs / 3,
        step: (record, now) => {
          sent = this.#parts.stopwatch();
          const answer = renew(record, this.data, leaseMs, now);
          return { answer, record: answer ? record : null };
        },
      });
      if (holds) this.#leased = sent;
      else if (!this.#ending) this.#lose();
    } catch (error) {
      this.#runner.notify(inboxError("renew", error));
      // Out of the store's reach for a whole lease: another process may have it by now.
      if (this.#leased.elapsedMs >= leaseMs) this.warnOfDouble("lease-lost");
    } finally {
      this.#renewing = false;
    }
  }

  /** Another process has the event, or may have: what this one still does may happen twice. */
  #lose(): void {
    if (this.#lost) return;
    this.#lost = true;
    if (!this.#parts.isAbandoned) this.warnOfDouble("lease-lost");
  }

  warnOfDouble(why: Extract<Notice, { type: "double-risk" }>["why"]): void {
    if (this.cancellation.isCancelled) return;
    this.cancellation.cancel(new Error(why));
    if (!this.#called) return;
    this.#runner.notify({ type: "double-risk", why, ...factsOf(this.data) });
  }
}
