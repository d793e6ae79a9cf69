import { inboxError, type Notice } from "../notices/notice.ts";
import type { AsyncContext } from "../time/async-context.ts";
import type { Awaitable } from "../time/awaitable.ts";
import { Cancellation } from "../time/cancellation.ts";
import { type Stopwatch, sleep } from "../time/clock.ts";
import { isAboutRecord, type Step } from "./changes.ts";
import type { Inbox, Lease, RunEnd, Runner } from "./inbox.ts";
import type { InboxParts } from "./parts.ts";
import type { Accepted, VerifiedEvent } from "./record/event.ts";
import { factsOf, type LeaseData, type StepChange } from "./record/lease.ts";
import type { IdempotencyRecord } from "./record/record.ts";
import { claimOf } from "./record/reference-claim.ts";
import { type Finished, finish, isDecided, noteClaim, renew, writeSteps } from "./record/run.ts";

/** Added to the step that ends a run, so that the same write also begins the next run. */
export interface Chain {
  readonly step: Step<void>;
  /** True if the write was already made and only its answer got lost: the run that it began is in the record. */
  isMade(record: IdempotencyRecord | null): boolean;
}

const REPEAT_MIN_MS = 100;
const REPEAT_MAX_MS = 5_000;

/** A run that was begun. */
export class ActiveRun implements Lease {
  readonly data: LeaseData;
  readonly context: AsyncContext;
  readonly cancellation: Cancellation = new Cancellation();
  readonly #runner: Runner;
  readonly #parts: InboxParts;
  readonly #accept: Inbox["accept"];
  /** Measures the time since the write that made or renewed the lease was sent. */
  #leased: Stopwatch;
  /** The end of the lease, on the store's clock. */
  #until: number;
  /** How much sooner the lease ends than this process's clock says: by how much it was dated too early, or more. */
  #behindMs: number;
  #reference: string | null;
  #called = false;
  #lost = false;
  /** Somebody has decided about the event, which took the lease from this process. */
  #decided = false;
  #broken = false;
  #renewing = false;
  /** The end of the run is being written. From then on, only the answer to that write shows whether the lease was lost. */
  #ending = false;

  /** To be made as soon as the write of its lease was answered, since that answer tells the store's time. */
  constructor(
    data: LeaseData,
    leased: Stopwatch,
    runner: Runner,
    context: AsyncContext,
    parts: InboxParts,
    accept: Inbox["accept"],
  ) {
    this.data = data;
    this.#reference = data.reference;
    this.#leased = leased;
    this.#until = data.now + parts.leaseMs;
    this.#runner = runner;
    this.context = context;
    this.#parts = parts;
    this.#accept = accept;
    this.#behindMs = this.#passed();
  }

  /** A handler was called. If its end cannot be stored, its effect may happen twice. */
  get wasCalled(): boolean {
    return this.#called;
  }

  /** The key of the claim that the event has on its reference; null if it has none. */
  get reference(): string | null {
    return this.#reference;
  }

  /** The record could not be read when something was to be written. Whoever ran the event again would get no further. */
  get isBroken(): boolean {
    return this.#broken;
  }

  mayCall(): ReturnType<Lease["mayCall"]> {
    if (this.#lost || this.#isOver) return "lost";
    const { isClosing, store } = this.#parts;
    return isClosing && store.endsWithProcess !== true ? "hand-back" : "yes";
  }

  /** True if another process may take the event, because the lease has ended on this process's clock or on the store's. */
  get #isOver(): boolean {
    return this.#leased.elapsedMs + this.#behind() >= this.#parts.leaseMs;
  }

  /**
   * The lease was dated by what this process knew of the store's time, which may have been too early. The answer to the write tells
   * the store's time, but not how long the write was on its way. So all that had passed on the store's clock by then counts, in
   * addition to the time since the write was sent. The time that the write took counts twice, which is on the safe side. A later
   * answer may show that the lease was dated even earlier.
   */
  #behind(): number {
    this.#behindMs = Math.max(this.#behindMs, this.#passed() - this.#leased.elapsedMs);
    return this.#behindMs;
  }

  /** How long the lease has lasted on the store's clock, as far as this process knows. */
  #passed(): number {
    const { store, leaseMs } = this.#parts;
    try {
      return Math.max(0, store.now(this.data.key) - (this.#until - leaseMs));
    } catch {
      // If the store cannot tell its time, only this process's clock decides.
      return 0;
    }
  }

  called(): void {
    this.#called = true;
  }

  async claimReference(event: VerifiedEvent): Promise<boolean> {
    const { key } = this.data;
    const wanted = claimOf(event, null, this.data.slot);
    if (wanted === null) return true;
    const { claims, store } = this.#parts;
    const { owner, claim } = await claims.take(wanted);
    if (owner !== key) return false;
    this.#reference = wanted.key;
    // A failover that lost the claim would let another event with the same reference run.
    if (claim !== null) await store.settled?.([claim]);
    await this.#write("claim", (record) => noteClaim(record, this.data, wanted.key));
    return true;
  }

  accept(event: VerifiedEvent): Awaitable<Accepted> {
    return this.#accept(event);
  }

  write(changes: readonly StepChange[]): Promise<boolean> {
    return this.#write("step", (record, now) => writeSteps(record, this.data, changes, now));
  }

  /** Makes a change that counts only under the lease. False: the lease is lost. */
  async #write(
    during: string,
    change: (record: IdempotencyRecord | null, now: number) => boolean,
  ): Promise<boolean> {
    if (this.#lost) return false;
    const holds = await this.#persist(during, (record, now) => {
      const answer = change(record, now);
      this.#decided = isDecided(record, this.data);
      return { answer, record: answer ? record : null };
    });
    if (holds !== true) this.#lose();
    return holds === true;
  }

  /** Writes how the run ended, together with what `chain` adds. Null if the lease was lost; then nothing was written. */
  async finish({ ending, changes }: RunEnd, chain: Chain): Promise<Finished | null> {
    this.#ending = true;
    let made: Finished = { kind: "lost" };
    let mayHaveEnded = false;
    const finished = await this.#persist<Finished>("finish", (record, now, mayHaveBeenMade) => {
      mayHaveEnded = mayHaveBeenMade;
      if (chain.isMade(record)) return { answer: made, record: null };
      made = finish(record, this.data, ending, changes, now);
      this.#decided = made.kind === "lost" && isDecided(record, this.data);
      if (made.kind === "lost") return { answer: made, record: null };
      const { begins = false, announce = false } = chain.step(record, now, mayHaveBeenMade);
      return { answer: made, record, begins, announce };
    });
    if (finished?.kind === "ended") return finished;
    // If the answer to the write got lost, another process may have taken the event since, because the write was made. If it was not
    // made, that process had to wait until the lease was over, and it warns before it calls anything.
    if (mayHaveEnded && !this.#isOver) this.#lost = true;
    else this.#lose();
    return null;
  }

  /**
   * While the store is down, the write is repeated. The handler is not: its result is kept until then. If the record has become
   * unreadable, there is nothing to wait for.
   */
  async #persist<T>(during: string, step: Step<T>): Promise<T | null> {
    const { acts, changes, environment, leaseMs } = this.#parts;
    for (let delayMs = REPEAT_MIN_MS; ; delayMs = Math.min(delayMs * 2, REPEAT_MAX_MS)) {
      if (this.#parts.isAbandoned) return null;
      try {
        const onFailure = (cause: unknown): void => acts.failed("end", cause);
        const answer = await changes.change({ key: this.data.key, step, deadlineMs: leaseMs, onFailure });
        acts.passed("end");
        return answer;
      } catch (error) {
        if (this.#parts.isAbandoned) return null;
        this.#runner.notify(inboxError(during, error));
        if (isAboutRecord(error)) {
          this.#broken = true;
          return null;
        }
        acts.failed("end", error);
        await sleep(environment, delayMs);
      }
    }
  }

  /** Renews the lease. Called every third of the lease's length. */
  async renew(): Promise<void> {
    if (this.#lost || this.#renewing || this.#ending) return;
    this.#renewing = true;
    const { changes, leaseMs, renewEveryMs } = this.#parts;
    let sent = this.#leased;
    let until = this.#until;
    try {
      const holds = await changes.change({
        key: this.data.key,
        deadlineMs: renewEveryMs,
        step: (record, now) => {
          sent = this.#parts.stopwatch();
          until = now + leaseMs;
          const answer = renew(record, this.data, leaseMs, now);
          this.#decided = isDecided(record, this.data);
          return { answer, record: answer ? record : null };
        },
      });
      if (holds) {
        this.#leased = sent;
        this.#until = until;
        this.#behindMs = this.#passed();
      } else if (!this.#ending) this.#lose();
    } catch (error) {
      this.#runner.notify(inboxError("renew", error));
      // The store could not be reached for a whole lease, so another process may have the event by now.
      if (this.#leased.elapsedMs >= leaseMs) this.warnOfDouble("lease-lost");
    } finally {
      this.#renewing = false;
    }
  }

  /** Another process has the event, or may have it. Whatever this process still does may happen twice. */
  #lose(): void {
    if (this.#lost) return;
    this.#lost = true;
    if (this.#parts.isAbandoned) return;
    if (this.#decided) this.cancellation.cancel(new Error("somebody has decided about the held event"));
    else this.warnOfDouble("lease-lost");
  }

  warnOfDouble(why: Extract<Notice, { type: "double-risk" }>["why"]): void {
    if (this.cancellation.isCancelled) return;
    this.cancellation.cancel(new Error(why));
    if (!this.#called) return;
    this.#runner.notify({ type: "double-risk", why, ...factsOf(this.data) });
  }
}
