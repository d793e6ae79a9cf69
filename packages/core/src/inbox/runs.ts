import type { Stopwatch } from "../clock.ts";
import { inboxError } from "../notices.ts";
import { ActiveRun, type Chain } from "./active-run.ts";
import { unreadable } from "./changes.ts";
import { InFlight } from "./in-flight.ts";
import {
  type Ending,
  type Inbox,
  type LeaseData,
  type RunEnd,
  type Runner,
  type RunReport,
  recordKeyOf,
  type StepChange,
  slotKeyOf,
} from "./inbox.ts";
import { FirstInFirstOut } from "./line.ts";
import type { InboxParts } from "./parts.ts";
import { Places } from "./places.ts";
import { isUnreadable } from "./record/codec.ts";
import { type BeginOptions, type Begun, begin, beginNext, isBegunBy } from "./record/run.ts";
import { dueOf } from "./record/schedule.ts";
import type { DueRecord } from "./store.ts";

/** Whoever looks for what is due, as far as runs concern it. */
export interface Looker {
  /** False while this process is to begin nothing by itself. */
  isTaking(): boolean;
  /** Something is due in so many milliseconds. */
  due(inMs: number): void;
  /** A place has become free. */
  freed(): void;
}

/** A run that was begun, until it gets a place. */
export interface BegunRun {
  readonly lease: LeaseData;
  /** Since when its lease counts. */
  readonly leased: Stopwatch;
  readonly runner: Runner;
  /** True for a run in the background: it waits for a place, and what is next of the record follows it there. */
  readonly inBackground: boolean;
  /** Told how it ended; `ending` is null when the lease was lost. */
  readonly ended: ((report: RunReport, ending: Ending["kind"] | null) => void) | null;
}

/** What follows a run on the same record. */
interface NextRun {
  /** It was begun in the write that ended the run. */
  begun: BegunRun | null;
  /** Somebody has to look at the record in so many milliseconds; null: never. */
  inMs: number | null;
}

/** What was begun and got no place in this time is handed back: handlers take longer than they did. */
const PATIENCE_MS = 250;

/** Everything that this process has begun: it waits for a place, or runs. A record is begun only once at a time. */
export class Runs {
  readonly places: Places;
  readonly #parts: InboxParts;
  readonly #looker: Looker;
  readonly #accept: Inbox["accept"];
  /** By the record's key; `run` is null until its handlers may be called. */
  readonly #active = new InFlight<string, { run: ActiveRun | null }>();
  readonly #waiting = new FirstInFirstOut<BegunRun>();
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

  /** True while a record is reserved whose run has not started. */
  isReserved(key: string): boolean {
    return this.#active.get(key)?.run === null;
  }

  /** Before a write that begins a run: the record, and a place. */
  reserve(key: string): void {
    this.places.reserve();
    this.#active.set(key, { run: null });
    this.#parts.changes.hold(key);
  }

  /** Nothing was begun, or the run has ended. */
  giveBack(key: string): void {
    this.#active.delete(key);
    this.#parts.changes.release(key);
    this.places.giveBack();
    // As long as others that were begun wait for a place, the store is asked for many at a time.
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
    return { key, token: environment.token(), leaseMs, force, firstStep: (data) => runner.firstStep(data) };
  }

  /** Begins what is next of a record that the store handed out. False when nothing of it was begun. */
  async beginDue(
    { key, ...due }: DueRecord,
    { runner, inBackground, ended }: Pick<BegunRun, "runner" | "inBackground" | "ended">,
  ): Promise<boolean> {
    if (this.has(key)) return false;
    if (isUnreadable(due.record)) {
      // It stays hidden for a while, and so does not come back at once.
      runner.notify(inboxError("take", unreadable(due.record.unreadable)));
      return false;
    }
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
          // Where nothing was due after all, it is written again, so that the store's index is right.
          return { answer: made, record, begins: made !== null };
        },
      });
      if (lease !== null) {
        this.start({ lease, leased, runner, inBackground, ended });
        return true;
      }
    } catch (error) {
      runner.notify(inboxError("begin", error));
    }
    this.giveBack(key);
    return false;
  }

  /** Runs one event now, whatever else runs. */
  async runNow(runner: Runner, eventId: string, force: "asked" | "last"): Promise<RunReport> {
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
      return new Promise((ended) => this.start({ lease, leased, runner, inBackground: false, ended }));
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

  /** Runs what was begun: at once, or in the background in its turn, when there is a place. */
  start(begun: BegunRun): void {
    if (begun.inBackground) {
      this.#waiting.push(begun);
      this.#watch();
      this.#startSoon();
    } else this.#startNow(begun);
  }

  #startNow(begun: BegunRun): void {
    const leave = this.places.enter();
    this.#parts.environment.soon(() => void this.#run(begun, leave));
  }

  /** Off the path of the delivery that began it, so that its answer is written first. */
  #startSoon(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    this.#parts.environment.soon(() => {
      this.#isStarting = false;
      this.#startWaiting();
    });
  }

  /** Starts what waits for a place, places or not: to run it to its end, or to hand it back. */
  startAll(): void {
    this.places.open(null);
    for (let begun = this.#waiting.shift(); begun !== undefined; begun = this.#waiting.shift())
      this.#startNow(begun);
  }

  /** What was begun and has not started is left to others, or to this process's next start. */
  handBackWaiting(): void {
    for (let begun = this.#waiting.shift(); begun !== undefined; begun = this.#waiting.shift()) {
      void this.#handBack(begun);
    }
  }

  /** Warns of everything that still runs, and tells how many handlers that concerns. */
  abandon(): number {
    let called = 0;
    for (const [, { run }] of this.#active.entries()) {
      if (run?.wasCalled === true) called++;
      run?.warnOfDouble("closed-while-running");
    }
    return called;
  }

  async #run({ lease, leased, runner, inBackground, ended }: BegunRun, leave: () => void): Promise<void> {
    const { key } = lease;
    const run = new ActiveRun(lease, leased, runner, this.#parts, this.#accept);
    this.#active.set(key, { run });
    this.#keepRenewing();
    const end = await runner.run(run);
    // Its handlers are through: while that is written, others may run.
    leave();
    this.#startWaiting();
    const next: NextRun = { begun: null, inMs: null };
    const finished = await run.finish(end, this.#chain(lease, runner, inBackground, next));
    if (finished?.kind === "ended") {
      end.written();
      for (const facts of finished.overtaken) runner.notify({ type: "stale", ...facts });
    }
    ended?.(reportOf(finished !== null, end.ending, lease), finished === null ? null : end.ending.kind);
    if (finished !== null && next.begun !== null) {
      this.#active.set(key, { run: null });
      this.start(next.begun);
    } else {
      this.giveBack(key);
      if (finished !== null && next.inMs !== null) this.#looker.due(next.inMs);
    }
  }

  /**
   * What was begun and waits gets the places that are free, also one that has just become free: were there fewer started in
   * a turn of the event loop than are begun, what waits would only grow.
   */
  #startWaiting(): void {
    while (this.places.isFree) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      void this.#run(next, this.places.enter());
    }
  }

  /** Hands back what has waited for too long, as long as anything waits. */
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

  /** It waits again as if it had not been begun, for whoever has a place first. */
  async #handBack({ lease, leased, runner }: BegunRun): Promise<void> {
    const { key, started, steps } = lease;
    const run = new ActiveRun(lease, leased, runner, this.#parts, this.#accept);
    this.#active.set(key, { run });
    const changes: readonly StepChange[] =
      started === null ? [] : [{ name: started, kind: "undone", before: steps[started] ?? null }];
    const next: NextRun = { begun: null, inMs: null };
    const end: RunEnd = { ending: { kind: "released" }, changes, written: () => {} };
    await run.finish(end, this.#chain(lease, runner, false, next));
    this.giveBack(key);
    if (next.inMs !== null) this.#looker.due(next.inMs);
  }

  /** Adds to the end of a run: the begin of what is next of the same record, here or, announced, elsewhere. */
  #chain({ key }: LeaseData, runner: Runner, inBackground: boolean, next: NextRun): Chain {
    const options = this.beginOptions(key, runner, null);
    const step: Chain["step"] = (record, now) => {
      if (record === null) return { answer: undefined, record };
      const mayBegin = inBackground && !this.#parts.isClosing && this.#looker.isTaking();
      const leased = this.#parts.stopwatch();
      const lease = mayBegin ? beginNext(record, { ...options, now }) : null;
      const due = dueOf(record);
      next.begun = lease === null ? null : { lease, leased, runner, inBackground, ended: null };
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
    const { environment, leaseMs } = this.#parts;
    environment.after(leaseMs / 3, () => {
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
