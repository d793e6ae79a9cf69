import type { Awaitable } from "../awaitable.ts";
import { Cancellation } from "../cancellation.ts";
import { sleep, type Stopwatch } from "../clock.ts";
import type { Environment } from "../environment.ts";
import { inboxError, type Notice } from "../notices.ts";
import type { Changes, Step } from "./changes.ts";
import {
  type Accepted,
  factsOf,
  type Lease,
  type LeaseData,
  type RunEnd,
  type Runner,
  type StepChange,
  type VerifiedEvent,
} from "./inbox.ts";
import { type Finished, finish, renew, writeSteps } from "./record/run.ts";

/** What a run takes from its inbox. */
export interface RunParts {
  readonly changes: Changes;
  readonly environment: Environment;
  readonly leaseMs: number;
  /** The inbox closes, and another process can have what was not called yet. */
  isHandBack(): boolean;
  /** The process is about to end: nothing is repeated any more. */
  isAbandoned(): boolean;
  /** Time by a new stopwatch: a lease counts from when its write was sent. */
  stopwatch(): Stopwatch;
  accept(event: VerifiedEvent): Awaitable<Accepted>;
}

/** Adds to the step that ends a run, in the same write: what runs next. */
export type Chain = Step<void>;

const REPEAT_MIN_MS = 100;
const REPEAT_MAX_MS = 5_000;

/** A run in progress. */
export class ActiveRun implements Lease {
  readonly data: LeaseData;
  readonly cancellation: Cancellation = new Cancellation();
  readonly #runner: Runner;
  readonly #inbox: RunParts;
  /** Runs since the write that made or renewed the lease was sent. */
  #leased: Stopwatch;
  #called = false;
  #lost = false;
  #renewing = false;
  /** Its end is being written: from then on only the answer to that tells whether the lease was lost. */
  #ending = false;

  constructor(data: LeaseData, leased: Stopwatch, runner: Runner, inbox: RunParts) {
    this.data = data;
    this.#leased = leased;
    this.#runner = runner;
    this.#inbox = inbox;
  }

  /** A handler was called: if nobody learns how it ended, its effect may come twice. */
  get wasCalled(): boolean {
    return this.#called;
  }

  mayCall(): ReturnType<Lease["mayCall"]> {
    if (this.#lost || this.#leased.elapsedMs >= this.#inbox.leaseMs) return "lost";
    return this.#inbox.isHandBack() ? "hand-back" : "yes";
  }

  called(): void {
    this.#called = true;
  }

  accept(event: VerifiedEvent): Awaitable<Accepted> {
    return this.#inbox.accept(event);
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
  async finish({ ending, changes }: RunEnd, chain: Chain | null): Promise<Finished | null> {
    this.#ending = true;
    const finished = await this.#persist<Finished>("finish", (record, now) => {
      const answer = finish(record, this.data, ending, changes, now);
      if (answer.kind === "lost") return { answer, record: null };
      const chained = chain?.(record, now);
      const announce = chained?.announce === true;
      return { answer, record, begins: chained?.begins === true, announce };
    });
    if (finished?.kind === "ended") return finished;
    this.#lose();
    return null;
  }

  /** What a handler has come to is kept while the store is down, and the write repeated: the handler is not. */
  async #persist<T>(during: string, step: Step<T>): Promise<T | null> {
    const { changes, environment, leaseMs } = this.#inbox;
    for (let delayMs = REPEAT_MIN_MS; ; delayMs = Math.min(delayMs * 2, REPEAT_MAX_MS)) {
      if (this.#inbox.isAbandoned()) return null;
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
    const { changes, leaseMs } = this.#inbox;
    let sent = this.#leased;
    try {
      const holds = await changes.change({
        key: this.data.key,
        deadlineMs: leaseMs / 3,
        step: (record, now) => {
          sent = this.#inbox.stopwatch();
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
    if (!this.#inbox.isAbandoned()) this.warnOfDouble("lease-lost");
  }

  warnOfDouble(why: Extract<Notice, { type: "double-risk" }>["why"]): void {
    if (this.cancellation.isCancelled) return;
    this.cancellation.cancel(new Error(why));
    if (!this.#called) return;
    this.#runner.notify({ type: "double-risk", why, ...factsOf(this.data) });
  }
}
