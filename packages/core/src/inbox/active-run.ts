import { type Awaitable, isPending } from "../awaitable.ts";
import { Cancellation } from "../cancellation.ts";
import { type Clock, sleep } from "../clock.ts";
import { inboxError, type Notice } from "../notices.ts";
import {
  type Accepted,
  type Ending,
  factsOf,
  type Job,
  type Lease,
  type LeaseData,
  type Runner,
  type StepChange,
  type VerifiedEvent,
} from "./inbox.ts";
import type { Fenced, Finished, IdempotencyStore } from "./store.ts";

/** What a run takes from its inbox. */
export interface RunSurroundings {
  readonly store: IdempotencyStore;
  readonly clock: Clock;
  readonly leaseMs: number;
  isHandBack(): boolean;
  /** The process is about to end: nothing is repeated any more. */
  isAbandoned(): boolean;
  accept(event: VerifiedEvent): Awaitable<Accepted>;
}

const REPEAT_MIN_MS = 100;
const REPEAT_MAX_MS = 5_000;

/** A run in progress. */
export class ActiveRun implements Lease {
  readonly data: LeaseData;
  readonly cancellation: Cancellation = new Cancellation();
  readonly #runner: Runner;
  readonly #inbox: RunSurroundings;
  /** When the lease lapses, by this process's clock, unless renewed. */
  #until: number;
  #started = false;
  #lost = false;
  /** Its end is being written: from then on only the answer to that tells whether the lease was lost. */
  #ending = false;

  constructor(data: LeaseData, runner: Runner, inbox: RunSurroundings) {
    this.data = data;
    this.#runner = runner;
    this.#inbox = inbox;
    this.#until = inbox.clock.now() + inbox.leaseMs;
  }

  /** A handler has been started: if it goes on unheard, its effect may come twice. */
  get started(): boolean {
    return this.#started;
  }

  isHandBack(): boolean {
    return this.#inbox.isHandBack();
  }

  accept(event: VerifiedEvent): Awaitable<Accepted> {
    return this.#inbox.accept(event);
  }

  step(name: string, change: StepChange): Awaitable<boolean> {
    if (this.#lost) return false;
    if (change.kind === "started") this.#started = true;
    const { job, token } = this.data;
    const writing = this.persist("step", () => this.#inbox.store.step(job, token, name, change));
    return isPending(writing) ? writing.then((fenced) => this.#holds(fenced)) : this.#holds(writing);
  }

  #holds(fenced: Fenced | null): boolean {
    if (fenced === "ok") return true;
    this.#lose();
    return false;
  }

  /** Writes how the run ended. Null: the lease was lost, and nothing was written. */
  finish(ending: Ending): Awaitable<readonly Job[] | null> {
    this.#ending = true;
    const { job, token } = this.data;
    const writing = this.persist("finish", () => this.#inbox.store.finish(job, token, ending));
    return isPending(writing) ? writing.then((finished) => this.#nextOf(finished)) : this.#nextOf(writing);
  }

  #nextOf(finished: Finished | null): readonly Job[] | null {
    if (finished?.fenced === "ok") return finished.next;
    this.#lose();
    return null;
  }

  /** The result of a handler is kept while the store is down, and the write repeated: the handler is not. */
  persist<T>(during: string, write: () => Awaitable<T>): Awaitable<T | null> {
    if (this.#inbox.isAbandoned()) return null;
    try {
      const writing = write();
      if (!isPending(writing)) return writing;
      return Promise.resolve(writing).catch((error: unknown) => this.#repeat(during, write, error));
    } catch (error) {
      return this.#repeat(during, write, error);
    }
  }

  async #repeat<T>(during: string, write: () => Awaitable<T>, first: unknown): Promise<T | null> {
    let error = first;
    for (let delayMs = REPEAT_MIN_MS; ; delayMs = Math.min(delayMs * 2, REPEAT_MAX_MS)) {
      this.#runner.notify(inboxError(during, error));
      await sleep(this.#inbox.clock, delayMs);
      if (this.#inbox.isAbandoned()) return null;
      try {
        return await write();
      } catch (again) {
        error = again;
      }
    }
  }

  async renew(): Promise<void> {
    if (this.#lost) return;
    const { store, clock, leaseMs } = this.#inbox;
    const asked = clock.now();
    try {
      const fenced = await store.renew(this.data.job, this.data.token, leaseMs);
      if (fenced === "ok") this.#until = asked + leaseMs;
      else if (!this.#ending) this.#lose();
    } catch (error) {
      this.#runner.notify(inboxError("renew", error));
      // Out of the store's reach for a whole lease: another worker may have it by now.
      if (this.#until <= clock.now()) this.warnOfDouble("lease-lost");
    }
  }

  /** Another worker has the event, or may have: what this one still does, may happen twice. */
  #lose(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.warnOfDouble("lease-lost");
  }

  warnOfDouble(why: Extract<Notice, { type: "double-risk" }>["why"]): void {
    if (this.cancellation.isCancelled) return;
    this.cancellation.cancel(new Error(why));
    if (!this.#started) return;
    this.#runner.notify({ type: "double-risk", why, ...factsOf(this.data) });
  }
}
