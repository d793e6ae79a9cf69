import { inboxError } from "../notices/notice.ts";
import { type AsyncContext, emptyContext } from "../time/async-context.ts";
import type { Stopwatch } from "../time/clock.ts";
import { ActiveRun, type Chain } from "./active-run.ts";
import { type Step, unreadable } from "./changes.ts";
import { InFlight } from "./in-flight.ts";
import type { Inbox, RunEnd, Runner } from "./inbox.ts";
import { FirstInFirstOut } from "./line.ts";
import { OneAtATime } from "./one-at-a-time.ts";
import type { InboxParts } from "./parts.ts";
import { Places } from "./places.ts";
import { isCanary } from "./record/canary.ts";
import { isUnreadable } from "./record/codec.ts";
import { type RunReport, recordKeyOf, slotKeyOf } from "./record/event.ts";
import type { Ending, LeaseData, StepChange } from "./record/lease.ts";
import { type BeginOptions, type Begun, begin, beginNext, hasInterrupted, isBegunBy } from "./record/run.ts";
import { dueOf } from "./record/schedule.ts";
import type { DueRecord, Versioned } from "./store.ts";

/** The dispatcher, as the runs see it. */
export interface Looker {
  /** False while this process must not begin anything by itself. */
  isTaking(): boolean;
  /** An event falls due in `inMs` milliseconds. */
  due(inMs: number): void;
  /** A place has become free. */
  freed(): void;
  /** A look has found a canary. */
  canary(due: DueRecord): Promise<void>;
}

/** A run that was begun, until it gets a place. */
export interface BegunRun {
  readonly lease: LeaseData;
  /** When its lease began. */
  readonly leased: Stopwatch;
  readonly runner: Runner;
  /** Where its handlers are called. */
  readonly context: AsyncContext;
  /** True for a run in the background. It waits for a place, and the next event of its record follows it there. */
  readonly inBackground: boolean;
  /** Called at the end of the run; `ending` is null if the lease was lost. */
  readonly ended: ((report: RunReport, ending: Ending["kind"] | null) => void) | null;
}

/** A begun run whose write was answered. */
interface WaitingRun extends BegunRun {
  readonly run: ActiveRun;
}

/** What follows a run on the same record. */
interface NextRun {
  /** The next run, if the write that ended this one has begun it. */
  begun: BegunRun | null;
  /** In how many milliseconds the record has to be looked at; null for never. */
  inMs: number | null;
}

/** A begun run that gets no place within this time is handed back. Handlers have become slower than when it was begun. */
const PATIENCE_MS = 250;
/** How many records are remembered that cannot be read. */
const MAX_BROKEN = 10_000;

/** All runs that this process has begun. Each waits for a place, or runs. A record has at most one run at a time. */
export class Runs {
  readonly places: Places;
  readonly #parts: InboxParts;
  readonly #looker: Looker;
  readonly #accept: Inbox["accept"];
  /** The runs by the key of their record; `run` is null until the handlers may be called, and once their end is written. */
  readonly #active = new InFlight<string, { run: ActiveRun | null }>();
  /** Records with a run that a look was given meanwhile, and so has hidden. */
  readonly #taken = new Set<string>();
  readonly #waiting = new FirstInFirstOut<WaitingRun>();
  readonly #interrupted = new OneAtATime();
  /**
   * Records that could not be read, or on which a step failed, at the end of a run; the latest last. They are not begun again in
   * this process, unless a look finds one unreadable first: then it is begun once it can be read.
   */
  readonly #broken = new Set<string>();
  #isStarting = false;
  #isWatching = false;
  #isRenewing = false;
  #whenAtRest: (() => void)[] = [];

  constructor(parts: InboxParts, looker: Looker, accept: Inbox["accept"]) {
    this.#parts = parts;
    this.#looker = looker;
    this.#accept = accept;
    this.places = new Places(parts.environment);
  }

  has(key: string): boolean {
    return this.#active.has(key);
  }

  /** True while the record is reserved without a run that has started. */
  isReserved(key: string): boolean {
    return this.#active.get(key)?.run === null;
  }

  /** Reserves the record and a place, before the write that begins a run. */
  reserve(key: string): void {
    this.places.reserve();
    this.#active.set(key, { run: null });
    this.#parts.changes.hold(key);
  }

  /** Gives the record and the place back: nothing was begun, or the run has ended. */
  giveBack(key: string): void {
    this.#active.delete(key);
    this.#taken.delete(key);
    this.#interrupted.release(key);
    this.#parts.changes.release(key);
    this.places.giveBack();
    // While begun runs wait here for a place, the store is not asked at every free place, but for many events at once.
    if (this.#waiting.size === 0 || this.places.isHalfEmpty) this.#looker.freed();
    if (this.#active.size === 0) for (const tell of this.#whenAtRest.splice(0)) tell();
  }

  /** Resolves once nothing of this process is begun or runs. */
  atRest(): Promise<void> {
    if (this.#active.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenAtRest.push(resolve));
  }

  beginOptions(key: string, runner: Runner, force: BeginOptions["force"]): Omit<BeginOptions, "now"> {
    const { environment, leaseMs } = this.#parts;
    return {
      key,
      token: environment.token(),
      leaseMs,
      force,
      mayRunInterrupted: () => this.#interrupted.take(key),
      firstStep: (data) => runner.firstStep(data),
      handlersOf: (data) => runner.handlersOf(data),
    };
  }

  /**
   * Begins the next event of a record that the store handed out. That may happen after a while; `isWanted` then tells whether
   * to begin it at all. Resolves to false if nothing was begun.
   */
  async beginDue(
    { key, ...due }: DueRecord,
    { runner, inBackground, ended }: Pick<BegunRun, "runner" | "inBackground" | "ended">,
    isWanted: () => boolean,
  ): Promise<boolean> {
    if (isCanary(key)) {
      await this.#looker.canary({ key, ...due });
      return false;
    }
    if (this.has(key)) {
      this.#taken.add(key);
      return false;
    }
    const { record } = due;
    if (isUnreadable(record) || this.#broken.has(key)) {
      // If it can be read again one day, somebody has repaired it.
      if (isUnreadable(record)) this.#broken.delete(key);
      const why = isUnreadable(record) ? record.unreadable : "the end of its last run could not be computed";
      // The record stays hidden for a while, so the next look does not find it again.
      runner.notify(inboxError("take", unreadable(why)));
      return false;
    }
    // A look that was under way at the stop has found it.
    if (this.#parts.isClosing || (inBackground && !this.#looker.isTaking())) {
      this.reserve(key);
      await this.#unhide(key, runner, due);
      this.giveBack(key);
      return false;
    }
    if (hasInterrupted(record) && !(await this.#turnOf(key, isWanted))) return false;
    const { changes, leaseMs } = this.#parts;
    this.reserve(key);
    const options = this.beginOptions(key, runner, null);
    let leased = this.#parts.stopwatch();
    let made: LeaseData | null = null;
    try {
      const lease = await changes.change<LeaseData | null>({
        key,
        guess: due,
        deadlineMs: leaseMs,
        step: (record, now) => {
          if (made !== null && isBegunBy(record, made)) return { answer: made, record: null };
          leased = this.#parts.stopwatch();
          made = record === null ? null : beginNext(record, { ...options, now });
          // If nothing was due after all, the record is written again to correct the store's index.
          return { answer: made, record, begins: made !== null };
        },
      });
      if (lease !== null) {
        this.#parts.acts.passed("take");
        this.start({ lease, leased, runner, context: emptyContext, inBackground, ended });
        return true;
      }
    } catch (error) {
      this.#parts.acts.failed("take", error);
      runner.notify(inboxError("begin", error));
    }
    this.giveBack(key);
    return false;
  }

  /** Waits for the turn of the record (see OneAtATime). Meanwhile the store may hand it to another process. */
  async #turnOf(key: string, isWanted: () => boolean): Promise<boolean> {
    if (!(await this.#interrupted.wait(key))) return false;
    if (isWanted() && !this.#parts.isClosing && !this.has(key)) return true;
    if (!this.has(key)) this.#interrupted.release(key);
    return false;
  }

  /** Runs one event now, even if every place is taken. */
  async runNow(
    runner: Runner,
    eventId: string,
    force: "asked" | "last",
    context: AsyncContext,
  ): Promise<RunReport> {
    const key = recordKeyOf(eventId);
    if (this.has(key)) return { state: "running", ran: false };
    const { changes, leaseMs } = this.#parts;
    this.reserve(key);
    const options = this.beginOptions(key, runner, force);
    let leased = this.#parts.stopwatch();
    let made: LeaseData | null = null;
    let begun: Begun;
    try {
      begun = await changes.change<Begun>({
        key,
        deadlineMs: leaseMs,
        step: (record, now) => {
          if (made !== null && isBegunBy(record, made)) {
            return { answer: { kind: "leased", lease: made }, record: null };
          }
          leased = this.#parts.stopwatch();
          const answer = begin(record, slotKeyOf(eventId), { ...options, now });
          made = answer.kind === "leased" ? answer.lease : null;
          return { answer, record: made === null ? null : record, begins: made !== null };
        },
      });
    } catch (error) {
      this.giveBack(key);
      throw error;
    }
    if (begun.kind === "leased") {
      const { lease } = begun;
      return new Promise((ended) =>
        this.start({ lease, leased, runner, context, inBackground: false, ended }),
      );
    }
    this.giveBack(key);
    switch (begun.kind) {
      case "missing":
        runner.notify({ type: "record-missing", eventId });
        return { state: null, ran: false };
      case "finished":
        return { state: begun.state, ran: false };
      case "wait":
        return { state: begun.running ? "running" : "waiting", ran: false };
    }
  }

  /** Runs a begun run: at once, or in the background when it gets a place. */
  start(begun: BegunRun): void {
    const { lease, leased, runner, context } = begun;
    for (const facts of lease.overtaken) runner.notify({ type: "stale", ...facts });
    const run = new ActiveRun(lease, leased, runner, context, this.#parts, this.#accept);
    const waiting = { ...begun, run };
    if (begun.inBackground) {
      // A look that was under way at the stop may still begin something.
      if (!this.#looker.isTaking() && !this.#parts.isClosing) {
        void this.#handBack(waiting);
        return;
      }
      this.#waiting.push(waiting);
      this.#watch();
      this.#startSoon();
    } else this.#startNow(waiting);
  }

  #startNow(begun: WaitingRun): void {
    const leave = this.places.enter();
    this.#parts.environment.soon(() => void this.#run(begun, leave));
  }

  /** Starts in a later turn, so that the answer to the delivery is written first. */
  #startSoon(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    this.#parts.environment.soon(() => {
      this.#isStarting = false;
      this.#startWaiting();
    });
  }

  /** Starts all waiting runs, even without a place. They run to their end, or are handed back. */
  startAll(): void {
    this.places.open(null);
    for (let begun = this.#waiting.shift(); begun !== undefined; begun = this.#waiting.shift())
      this.#startNow(begun);
  }

  /** Hands back the runs that have not started. Another process takes them, or the next start of this one. */
  handBackWaiting(): void {
    for (let begun = this.#waiting.shift(); begun !== undefined; begun = this.#waiting.shift()) {
      void this.#handBack(begun);
    }
  }

  /** Warns about every run that is not over, and returns how many of them have called a handler. */
  abandon(): number {
    let called = 0;
    for (const [, { run }] of this.#active.entries()) {
      if (run?.wasCalled === true) called++;
      run?.warnOfDouble("closed-while-running");
    }
    return called;
  }

  async #run(
    { run, lease, leased, runner, inBackground, ended }: WaitingRun,
    leave: () => void,
  ): Promise<void> {
    const { key } = lease;
    this.#active.set(key, { run });
    this.#keepRenewing();
    // It has waited long for its place. The timer that renews all leases could fire too late for this one.
    if (leased.elapsedMs >= this.#parts.renewEveryMs) void run.renew();
    const end = await runner.run(run);
    // Its handlers are done. Other runs may have the place while that is written.
    leave();
    this.#startWaiting();
    const next: NextRun = { begun: null, inMs: null };
    const finished = await run.finish(end, this.#chain(lease, runner, inBackground, next));
    if (finished?.kind === "ended") {
      end.written();
      for (const facts of finished.overtaken) runner.notify({ type: "stale", ...facts });
    }
    if (run.isBroken) this.#remember(key);
    const hasEnded = finished?.kind === "ended" && end.ending.kind === "done";
    const closing = hasEnded ? this.#closeClaim(run, runner) : null;
    if (finished !== null && next.begun !== null) {
      this.#active.set(key, { run: null });
      this.start(next.begun);
      return;
    }
    if (closing !== null) await closing;
    if (!run.isBroken) await this.#unhideIfTaken(key, runner);
    ended?.(reportOf(finished !== null, end.ending, lease), finished === null ? null : end.ending.kind);
    this.giveBack(key);
    if (finished !== null && next.inMs !== null) this.#looker.due(next.inMs);
  }

  #remember(key: string): void {
    this.#broken.add(key);
    for (const oldest of this.#broken) {
      if (this.#broken.size <= MAX_BROKEN) break;
      this.#broken.delete(oldest);
    }
  }

  async #closeClaim({ reference, data }: ActiveRun, runner: Runner): Promise<void> {
    if (reference === null || this.#parts.isAbandoned) return;
    const closing = this.#parts.claims.eventEnded(reference, data.key);
    await closing.catch((error: unknown) => runner.notify(inboxError("claim", error)));
  }

  /**
   * Gives all free places to waiting runs, including a place that has just become free. If fewer runs were started in a turn
   * of the event loop than are begun, more and more would wait.
   */
  #startWaiting(): void {
    while (this.places.isFree) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      void this.#run(next, this.places.enter());
    }
  }

  /** Hands back runs that have waited too long. Goes on while any run waits. */
  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#parts.environment.after(PATIENCE_MS, () => {
      this.#isWatching = false;
      for (;;) {
        const oldest = this.#waiting.peek();
        if (oldest === undefined) return;
        if (oldest.leased.elapsedMs < PATIENCE_MS) break;
        this.#waiting.shift();
        this.places.runsTakeAtLeast(PATIENCE_MS);
        void this.#handBack(oldest);
      }
      this.#watch();
    });
  }

  /** Ends a run before any handler was called. The event then waits for the first process that has a place. */
  async #handBack({ run, lease, runner }: WaitingRun): Promise<void> {
    const { key, started, steps } = lease;
    this.#active.set(key, { run });
    const changes: readonly StepChange[] =
      started === null ? [] : [{ name: started, kind: "undone", before: steps[started] ?? null }];
    const next: NextRun = { begun: null, inMs: null };
    const end: RunEnd = { ending: { kind: "released" }, changes, written: () => {} };
    await run.finish(end, this.#chain(lease, runner, false, next));
    if (!run.isBroken) await this.#unhideIfTaken(key, runner);
    this.giveBack(key);
    if (next.inMs !== null) this.#looker.due(next.inMs);
  }

  /** A look may have taken the record after the end of its run was written, and before this process knew. */
  async #unhideIfTaken(key: string, runner: Runner): Promise<void> {
    while (this.#taken.delete(key)) {
      this.#active.set(key, { run: null });
      await this.#unhide(key, runner);
    }
  }

  /** Writes a record again that a look of this process has hidden, so that whoever looks next is given it. */
  async #unhide(key: string, runner: Runner, guess?: Versioned): Promise<void> {
    if (this.#parts.isAbandoned) return;
    const { changes, hideMs } = this.#parts;
    const step: Step<void> = (record, now) => {
      const due = record === null ? null : dueOf(record);
      return {
        answer: undefined,
        record: due === null ? null : record,
        announce: due !== null && due.at <= now,
      };
    };
    try {
      await changes.change({ key, guess, step, deadlineMs: hideMs });
    } catch (error) {
      if (!this.#parts.isAbandoned) runner.notify(inboxError("release", error));
    }
  }

  /** Added to the end of a run: begins the next event of the record here, or announces it to other processes. */
  #chain({ key }: LeaseData, runner: Runner, inBackground: boolean, next: NextRun): Chain {
    const options = this.beginOptions(key, runner, null);
    const step: Chain["step"] = (record, now) => {
      if (record === null) return { answer: undefined, record };
      const mayBegin = inBackground && !this.#parts.isClosing && this.#looker.isTaking();
      const leased = this.#parts.stopwatch();
      const lease = mayBegin ? beginNext(record, { ...options, now }) : null;
      const due = dueOf(record);
      next.begun =
        lease === null ? null : { lease, leased, runner, context: emptyContext, inBackground, ended: null };
      next.inMs = due === null ? null : due.at - now;
      const announce = lease === null && next.inMs !== null && next.inMs <= 0;
      return { answer: undefined, record, begins: lease !== null, announce };
    };
    return { step, isMade: (record) => next.begun !== null && isBegunBy(record, next.begun.lease) };
  }

  /** One timer renews every lease of this process. */
  #keepRenewing(): void {
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    const { environment, renewEveryMs } = this.#parts;
    environment.after(renewEveryMs, () => {
      this.#isRenewing = false;
      if (this.#active.size === 0 || this.#parts.isAbandoned) return;
      for (const [, { run }] of this.#active.entries()) void run?.renew();
      this.#keepRenewing();
    });
  }
}

function reportOf(isWritten: boolean, ending: Ending, { mode }: LeaseData): RunReport {
  if (!isWritten) return { state: "running", ran: true };
  switch (ending.kind) {
    case "done":
      return { state: "done", ran: true };
    case "held":
    case "told":
      return { state: "held", ran: true };
    case "retry":
    case "released":
      return { state: mode === "tell" ? "held" : "waiting", ran: true };
  }
}
