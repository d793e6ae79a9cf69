import { type Awaitable, isPending } from "../awaitable.ts";
import { sleep, Stopwatch } from "../clock.ts";
import { type Environment, environmentOf } from "../environment.ts";
import { describeError } from "../foreign-error.ts";
import { inboxError } from "../notices.ts";
import { type AcceptAnswer, acceptStep, type Known, type Need } from "./accepting.ts";
import { ActiveRun, type Chain, type RunParts } from "./active-run.ts";
import { Changes, type Outcome, unreadable } from "./changes.ts";
import { Dispatcher } from "./dispatcher.ts";
import { withOwnErrors } from "./failures.ts";
import { heldEntries } from "./held.ts";
import { InFlight } from "./in-flight.ts";
import {
  type Accepted,
  type AcceptOptions,
  type Ending,
  type HeldEntries,
  type Inbox,
  isEventId,
  type LeaseData,
  type Life,
  type Runner,
  type Running,
  type RunReport,
  recordKeyOf,
  slotKeyOf,
  type VerifiedEvent,
  type WorkOptions,
  type WorkReport,
} from "./inbox.ts";
import { FirstInFirstOut } from "./line.ts";
import { Places } from "./places.ts";
import { isUnreadable } from "./record/codec.ts";
import { lifeOf } from "./record/decisions.ts";
import { claimReference } from "./record/reference-claim.ts";
import { dueOf } from "./record/schedule.ts";
import { type BeginOptions, type Begun, begin, beginNext, type Finished } from "./record/run.ts";
import type { DueRecord, RecordStore, Versioned } from "./store.ts";

/** Options of {@link createInbox}. */
export interface InboxOptions {
  /** How long a process may be silent before another takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** How often a process that runs events looks for what others have left. Default 500 ms. */
  readonly pollMs?: number | undefined;
  /** Time and randomness; the store has to be given the same. For tests. */
  readonly environment?: Environment | undefined;
}

const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_POLL_MS = 500;
const DEFAULT_DEADLINE_MS = 2_000;
const PRUNE_EVERY_MS = 60_000;
const HELD_KNOWN_FOR_MS = 1_000;
const LANES_AT_CLOSE = 16;
const PAGE = 100;

/**
 * Makes an inbox of a store: the table of deduplication, leases, retries, what is held, and running what is due.
 *
 * @experimental The interface of a store may still change in a minor release.
 */
export function createInbox(store: RecordStore, options: InboxOptions = {}): Inbox {
  return withOwnErrors(new Engine(store, options));
}

/** A run that was begun, until it gets a place. */
interface BegunRun {
  readonly lease: LeaseData;
  readonly leased: Stopwatch;
  readonly runner: Runner;
  /** Runs what is next of the record in the same place afterwards. */
  readonly chains: boolean;
  readonly ended: ((report: RunReport, ending: Ending["kind"] | null) => void) | null;
}

/** What follows a run on the same record. */
interface NextRun {
  /** It was begun in the write that ended the run. */
  begun: Omit<BegunRun, "ended"> | null;
  /** Somebody has to look at the record in so many milliseconds; null: never. */
  inMs: number | null;
}

class Engine implements Inbox {
  readonly durability: Inbox["durability"];
  readonly held: HeldEntries;
  readonly #store: RecordStore;
  readonly #environment: Environment;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  readonly #changes: Changes;
  readonly #places: Places;
  /** What this process runs or has begun, by the record's key. */
  readonly #active = new InFlight<string, { run: ActiveRun | null }>();
  readonly #line = new FirstInFirstOut<BegunRun>();
  readonly #runParts: RunParts;
  #opening: Promise<void> | null = null;
  #isOpen = false;
  #dispatcher: Dispatcher | null = null;
  #runner: Runner | null = null;
  #unsubscribe: (() => void) | null = null;
  #renewing = false;
  #heldKnown: { count: number; readonly since: Stopwatch } | null = null;
  /** Accepts under way. */
  #accepting = 0;
  #closing = false;
  #abandoned = false;
  #atRest: (() => void)[] = [];

  constructor(store: RecordStore, { leaseMs, pollMs, environment }: InboxOptions) {
    this.#store = store;
    this.durability = store.durability;
    this.#environment = environment ?? environmentOf();
    this.#leaseMs = leaseMs ?? DEFAULT_LEASE_MS;
    this.#pollMs = store.endsWithProcess === true ? Number.POSITIVE_INFINITY : (pollMs ?? DEFAULT_POLL_MS);
    this.#changes = new Changes(store, this.#environment, this.#leaseMs);
    this.#places = new Places(this.#environment);
    this.#runParts = {
      changes: this.#changes,
      environment: this.#environment,
      leaseMs: this.#leaseMs,
      isHandBack: () => this.#closing && store.endsWithProcess !== true,
      isAbandoned: () => this.#abandoned,
      stopwatch: () => new Stopwatch(this.#environment),
      accept: (event) => this.accept(event, { deadlineMs: this.#leaseMs }),
    };
    this.held = heldEntries({
      store,
      changes: this.#changes,
      deadlineMs: this.#leaseMs,
      ready: () => this.ready(),
      decided: () => {
        this.#heldKnown = null;
        this.#dispatcher?.wake(0);
      },
    });
  }

  ready(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    await this.#store.open();
    this.#isOpen = true;
    if (this.#store.prune !== undefined) this.#pruneLater();
  }

  accept(event: VerifiedEvent, options: AcceptOptions = {}): Awaitable<Accepted> {
    const accepting = (): Awaitable<Accepted> =>
      awaitable((settle) => this.#accept(event, options, UNKNOWN_YET, settle));
    return this.#isOpen || this.#store.immediate === true ? accepting() : this.ready().then(accepting);
  }

  /** Asks the table. Comes back with more knowledge where that was needed, which is seldom. */
  #accept(event: VerifiedEvent, options: AcceptOptions, known: Known, settle: Settle<Accepted>): void {
    const { delayMs = 0, maxHeld = Number.POSITIVE_INFINITY, deadlineMs = DEFAULT_DEADLINE_MS, handle } = options;
    const { key } = event;
    const runner = handle ?? this.#runner;
    const isBegun = runner !== null && (handle !== undefined ? !this.#active.has(key) : this.#mayBegin(key));
    if (isBegun) this.#reserve(key);
    this.#accepting++;
    const step = acceptStep({
      event,
      delayMs,
      maxHeld,
      forgottenBefore: this.#store.forgottenBefore?.() ?? Number.NEGATIVE_INFINITY,
      known,
      begin: !isBegun
        ? null
        : {
            what: handle !== undefined ? "this" : "next",
            options: this.#beginOptions(key, runner, handle !== undefined ? "asked" : null),
            isAllowed: () => this.#active.get(key)?.run === null,
          },
      stopwatch: this.#runParts.stopwatch,
    });
    this.#changes.ask<AcceptAnswer>({
      key,
      step,
      deadlineMs,
      guess: this.#active.has(key) && !isBegun ? undefined : null,
      settle: (outcome) => {
        this.#accepting--;
        const begun = outcome.ok && outcome.answer.kind === "accepted" ? outcome.answer.begun : null;
        if (isBegun && begun === null) this.#giveBack(key);
        if (!outcome.ok) {
          this.#rest();
          settle.fail(outcome.error);
          return;
        }
        if (outcome.answer.kind === "needs") {
          void this.#findOut(outcome.answer.need, event, known).then(
            (more) => this.#accept(event, options, more, settle),
            settle.fail,
          );
          return;
        }
        this.#accepted(outcome.answer, outcome.version, key, options, runner, settle);
      },
    });
  }

  /** Starts what was begun, wakes who has to know, and answers once replicas have it. */
  #accepted(
    { accepted, state, begun }: Extract<AcceptAnswer, { kind: "accepted" }>,
    version: string | null,
    key: string,
    { handle, delayMs = 0 }: AcceptOptions,
    runner: Runner | null,
    settle: Settle<Accepted>,
  ): void {
    if (accepted.outcome === "held" && this.#heldKnown !== null) this.#heldKnown.count++;
    let answer = accepted;
    let ended: BegunRun["ended"] = null;
    if (handle !== undefined && begun !== null) {
      const handled = new Promise<RunReport>((resolve) => {
        ended = resolve;
      });
      answer = { ...accepted, handled };
    } else if (handle !== undefined) {
      answer = { ...accepted, handled: Promise.resolve({ state, ran: false }) };
    }
    const start = (): void => {
      if (begun !== null && runner !== null) {
        this.#start({ ...begun, runner, chains: handle === undefined, ended }, handle !== undefined);
      } else if (isNews(accepted)) {
        this.#dispatcher?.added(delayMs);
      }
      this.#rest();
    };
    const settling = version === null ? undefined : this.#store.settled?.([{ key, version }]);
    if (settling === undefined) {
      start();
      settle.done(answer);
    } else {
      settling.then(
        () => {
          start();
          settle.done(answer);
        },
        (error: unknown) => {
          start();
          settle.fail(error);
        },
      );
    }
  }

  async #findOut(need: Need, event: VerifiedEvent, known: Known): Promise<Known> {
    if (need === "held") return { ...known, held: await this.#countHeld() };
    const { referenceKey } = event;
    if (referenceKey === null) return { ...known, referenceReused: false };
    const owner = await this.#changes.change({
      key: referenceKey,
      deadlineMs: DEFAULT_DEADLINE_MS,
      guess: null,
      step: (record, now) => claimReference(record, event, now),
    });
    return { ...known, referenceReused: owner !== event.key };
  }

  /** How many entries are held: asked for once a second, and counted on from there. */
  async #countHeld(): Promise<number> {
    const known = this.#heldKnown;
    if (known !== null && this.#store.immediate !== true && known.since.elapsedMs < HELD_KNOWN_FOR_MS) {
      return known.count;
    }
    const since = new Stopwatch(this.#environment);
    const { held } = await this.#store.counts();
    this.#heldKnown = { count: held, since };
    return held;
  }

  /** Whether an event that is accepted now may be begun in the same step. */
  #mayBegin(key: string): boolean {
    const dispatcher = this.#dispatcher;
    if (dispatcher === null || !dispatcher.isTaking || dispatcher.isBacklog || this.#closing) return false;
    return this.#places.room > 0 && !this.#active.has(key);
  }

  #reserve(key: string): void {
    this.#places.reserve();
    this.#active.set(key, { run: null });
    this.#changes.hold(key);
  }

  #giveBack(key: string): void {
    this.#active.delete(key);
    this.#changes.release(key);
    this.#places.giveBack();
    // As long as others that have begun wait for a place, the store is asked for many at a time.
    if (this.#line.size === 0 || this.#places.isHalfEmpty) this.#dispatcher?.freed();
    this.#rest();
  }

  #beginOptions(key: string, runner: Runner, force: BeginOptions["force"]): Omit<BeginOptions, "now"> {
    return {
      key,
      token: this.#environment.token(),
      leaseMs: this.#leaseMs,
      force,
      firstStep: (data) => runner.firstStep(data),
    };
  }

  async run(...[runner, { concurrency }]: Parameters<Inbox["run"]>): Promise<Running> {
    await this.ready();
    this.#runner = runner;
    this.#places.open(concurrency);
    const dispatcher = new Dispatcher({
      store: this.#store,
      environment: this.#environment,
      leaseMs: this.#leaseMs,
      pollMs: this.#pollMs,
      runner,
      room: () => this.#places.room,
      begin: (record) => void this.#beginDue(record, runner, true, null),
    });
    this.#dispatcher = dispatcher;
    dispatcher.wake(0);
    this.#unsubscribe = (await this.#store.onDue?.(() => dispatcher.wake(0))) ?? null;
    return {
      pause: () => dispatcher.pause(),
      resume: () => dispatcher.resume(),
      stop: () => {
        dispatcher.stop();
        return this.#untilAtRest();
      },
    };
  }

  /** Begins what is next of a record that the store handed out; what is not due after all leaves the store's index. */
  async #beginDue(
    { key, ...due }: DueRecord,
    runner: Runner,
    chains: boolean,
    ended: BegunRun["ended"],
  ): Promise<boolean> {
    if (this.#active.has(key)) return false;
    if (isUnreadable(due.record)) {
      // It stays hidden for a lease, and so does not come back at once.
      runner.notify(inboxError("take", unreadable(due.record.unreadable)));
      return false;
    }
    this.#reserve(key);
    const options = this.#beginOptions(key, runner, null);
    let leased = new Stopwatch(this.#environment);
    let made: LeaseData | null = null;
    try {
      const lease = await this.#changes.change<LeaseData | null>({
        key,
        guess: due,
        deadlineMs: this.#leaseMs,
        step: (record, now) => {
          if (made !== null && isOwn(record?.slots[made.slot]?.token, options.token)) return { answer: made, record: null };
          leased = new Stopwatch(this.#environment);
          made = record === null ? null : beginNext(record, { ...options, now });
          return { answer: made, record, begins: made !== null };
        },
      });
      if (lease !== null) {
        this.#start({ lease, leased, runner, chains, ended }, !chains);
        return true;
      }
    } catch (error) {
      runner.notify(inboxError("begin", error));
    }
    this.#giveBack(key);
    return false;
  }

  async work(runner: Runner, { deadlineMs, limit, concurrency }: WorkOptions): Promise<WorkReport> {
    await this.ready();
    this.#runner = runner;
    const time = new Stopwatch(this.#environment);
    let taken = 0;
    let ran = 0;
    let failed = 0;
    const lane = async (): Promise<void> => {
      while (taken < limit && time.elapsedMs < deadlineMs && !this.#closing) {
        taken++;
        const { records } = await this.#store.takeDue(1, this.#leaseMs);
        const [record] = records;
        const ending = record === undefined ? null : await this.#runDue(record, runner);
        if (ending === null) taken--;
        else ran++;
        if (ending === "retry" || ending === "held") failed++;
        if (record === undefined) return;
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, limit) }, lane));
    await this.#store.prune?.();
    const { left, nextDueAt } = await this.#store.takeDue(0, 0);
    return { ran, failed, remaining: left, nextDueAt };
  }

  /** How the run of a due record ended; null when there was nothing to run. */
  #runDue(record: DueRecord, runner: Runner): Promise<Ending["kind"] | null> {
    return new Promise((resolve) => {
      void this.#beginDue(record, runner, false, (_, ending) => resolve(ending)).then((isBegun) => {
        if (!isBegun) resolve(null);
      });
    });
  }

  async runEvent(runner: Runner, eventId: string): Promise<RunReport> {
    this.#runner = runner;
    return this.#runNow(runner, eventId, "asked");
  }

  async #runNow(runner: Runner, eventId: string, force: "asked" | "last"): Promise<RunReport> {
    await this.ready();
    if (!isEventId(eventId)) return { state: null, ran: false };
    const key = recordKeyOf(eventId);
    if (this.#active.has(key)) {
      const life = await this.read(eventId);
      return { state: life?.state ?? null, ran: false };
    }
    this.#reserve(key);
    const options = this.#beginOptions(key, runner, force);
    let leased = new Stopwatch(this.#environment);
    let made: Begun | null = null;
    let begun: Begun;
    try {
      begun = await this.#changes.change<Begun>({
        key,
        deadlineMs: this.#leaseMs,
        step: (record, now) => {
          const slot = slotKeyOf(eventId);
          if (made?.kind === "leased" && isOwn(record?.slots[slot]?.token, options.token)) {
            return { answer: made, record: null };
          }
          leased = new Stopwatch(this.#environment);
          made = begin(record, slot, { ...options, now });
          const isLeased = made.kind === "leased";
          return { answer: made, record: isLeased ? record : null, begins: isLeased };
        },
      });
    } catch (error) {
      this.#giveBack(key);
      throw error;
    }
    if (begun.kind === "leased") {
      const { lease } = begun;
      return new Promise((resolve) => this.#start({ lease, leased, runner, chains: false, ended: resolve }, true));
    }
    this.#giveBack(key);
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

  /** Runs what was begun, at once or when there is a place. */
  #start(begun: BegunRun, atOnce: boolean): void {
    if (!atOnce && !this.#places.isFree) {
      this.#line.push(begun);
      return;
    }
    const leave = this.#places.enter();
    this.#environment.soon(() => void this.#run(begun, leave));
  }

  async #run(begun: BegunRun, leave: () => void): Promise<void> {
    const { lease, leased, runner, chains, ended } = begun;
    const { key } = lease;
    const run = new ActiveRun(lease, leased, runner, this.#runParts);
    this.#active.set(key, { run });
    this.#keepRenewing();
    const end = await runner.run(run);
    const next: NextRun = { begun: null, inMs: null };
    const chain = this.#chainOf(lease, runner, chains, next);
    const finished = await run.finish(end, chain);
    leave();
    if (finished !== null) {
      end.written();
      this.#told(finished, runner);
    }
    ended?.(reportOf(finished, end.ending, lease), finished === null ? null : end.ending.kind);
    if (finished !== null && next.begun !== null) {
      this.#active.set(key, { run: null });
      this.#start({ ...next.begun, ended: null }, false);
    } else {
      this.#giveBack(key);
      if (end.ending.kind === "held") this.#heldKnown = null;
      if (next.inMs !== null) this.#dispatcher?.wake(next.inMs);
    }
    this.#startNext();
  }

  #told(finished: Finished, runner: Runner): void {
    if (finished.kind !== "ended") return;
    for (const facts of finished.overtaken) runner.notify({ type: "stale", ...facts });
  }

  /** What was begun and waits for a place gets the one that has become free. */
  #startNext(): void {
    if (!this.#places.isFree) return;
    const next = this.#line.shift();
    if (next !== undefined) this.#start(next, false);
  }

  /** Adds to the end of a run: the begin of what is next of the same record, here or, announced, elsewhere. */
  #chainOf(
    { key }: LeaseData,
    runner: Runner,
    chains: boolean,
    next: NextRun,
  ): Chain {
    const options = this.#beginOptions(key, runner, null);
    return (record, now) => {
      if (record === null) return { answer: undefined, record };
      const mayBegin = chains && !this.#closing && this.#dispatcher?.isTaking === true;
      const leased = new Stopwatch(this.#environment);
      const lease = mayBegin ? beginNext(record, { ...options, now }) : null;
      const due = dueOf(record);
      next.begun = lease === null ? null : { lease, leased, runner, chains };
      next.inMs = due === null ? null : due.at - now;
      return { answer: undefined, record, begins: lease !== null, announce: lease === null && next.inMs === 0 };
    };
  }

  /** One timer renews every lease of this process. */
  #keepRenewing(): void {
    if (this.#renewing) return;
    this.#renewing = true;
    this.#environment.after(this.#leaseMs / 3, () => {
      this.#renewing = false;
      if (this.#active.size === 0 || this.#abandoned) return;
      for (const [, { run }] of this.#active.entries()) void run?.renew();
      this.#keepRenewing();
    });
  }

  #pruneLater(): void {
    this.#environment.after(PRUNE_EVERY_MS, () => {
      if (this.#closing) return;
      void this.#prune().finally(() => this.#pruneLater());
    });
  }

  async #prune(): Promise<void> {
    try {
      while (!this.#closing && (await this.#store.prune?.()) === true);
    } catch (error) {
      this.#runner?.notify(inboxError("prune", error));
    }
  }

  async read(eventId: string): Promise<Life | null> {
    await this.ready();
    if (!isEventId(eventId)) return null;
    const [found] = await this.#store.read([recordKeyOf(eventId)]);
    return lifeOf(recordOf(found ?? null), eventId);
  }

  async health(): ReturnType<Inbox["health"]> {
    try {
      await this.ready();
      await this.#store.probe();
      const { waiting, retrying, running, held } = await this.#store.counts();
      return { ok: true, detail: null, waiting: waiting + retrying, running, held };
    } catch (error) {
      return { ok: false, detail: describeError(error), waiting: null, running: null, held: null };
    }
  }

  /** Nothing is accepted, begun or run. */
  get #isAtRest(): boolean {
    return this.#accepting === 0 && this.#active.size === 0;
  }

  #rest(): void {
    if (!this.#isAtRest || this.#atRest.length === 0) return;
    const waiting = this.#atRest;
    this.#atRest = [];
    for (const tell of waiting) tell();
  }

  #untilAtRest(): Promise<void> {
    if (this.#isAtRest) return Promise.resolve();
    return new Promise((resolve) => this.#atRest.push(resolve));
  }

  async close({ graceMs }: { readonly graceMs: number }): Promise<{ readonly unfinished: number }> {
    this.#closing = true;
    const release = this.#environment.hold();
    this.#dispatcher?.stop();
    try {
      this.#unsubscribe?.();
      const ended = this.#finishWhatRuns().then(() => true);
      const inTime = await Promise.race([ended, sleep(this.#environment, graceMs).then(() => false)]);
      let unfinished = 0;
      if (!inTime) {
        this.#abandoned = true;
        for (const [, { run }] of this.#active.entries()) {
          if (run === null) continue;
          if (run.wasCalled) unfinished++;
          run.warnOfDouble("closed-while-running");
        }
      }
      if (this.#store.endsWithProcess === true) unfinished = await this.#countLost();
      await this.#store.close();
      return { unfinished };
    } finally {
      release();
    }
  }

  async #finishWhatRuns(): Promise<void> {
    // What has begun and waits for a place is handed back, or run to its end where nobody else can have it.
    this.#places.open(null);
    for (let begun = this.#line.shift(); begun !== undefined; begun = this.#line.shift()) this.#start(begun, true);
    await this.#untilAtRest();
    if (this.#store.endsWithProcess === true && this.#runner !== null) await this.#runTheRest(this.#runner);
  }

  /** The store ends with the process: everything that waits gets its last try. */
  async #runTheRest(runner: Runner): Promise<void> {
    const waiting: string[] = [];
    for (const state of ["waiting", "retrying", "held"] as const) {
      for (let cursor: Parameters<RecordStore["list"]>[1] = null; ; ) {
        const page = await this.#store.list({ state }, cursor, PAGE);
        waiting.push(...page.events.map(({ eventId }) => eventId));
        if (page.next === null) break;
        cursor = page.next;
      }
    }
    const lane = async (): Promise<void> => {
      for (let eventId = waiting.shift(); eventId !== undefined && !this.#abandoned; eventId = waiting.shift()) {
        const { state } = await this.#runNow(runner, eventId, "last");
        // Whoever is to be told of what this has put on hold.
        if (state === "held") await this.#runNow(runner, eventId, "last");
      }
    };
    await Promise.all(Array.from({ length: LANES_AT_CLOSE }, lane));
  }

  async #countLost(): Promise<number> {
    const { waiting, retrying, running, held } = await this.#store.counts();
    return waiting + retrying + running + held;
  }
}

/** A run, or the onHeld handlers, may wait for somebody. */
function isNews({ outcome }: Accepted): boolean {
  return outcome === "new" || outcome === "progress" || outcome === "held";
}

const UNKNOWN_YET: Known = { referenceReused: null, held: null };

function isOwn(found: string | null | undefined, token: string): boolean {
  return found === token || found === `${token}.`;
}

function recordOf(found: Versioned | null): Parameters<typeof lifeOf>[0] {
  if (found === null) return null;
  if (isUnreadable(found.record)) throw unreadable(found.record.unreadable);
  return found.record;
}

function reportOf(finished: Finished | null, ending: Ending, { mode }: LeaseData): RunReport {
  if (finished === null) return { state: "running", ran: true };
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

/** Takes an outcome: one of the two is called, once. */
interface Settle<T> {
  readonly done: (value: T) => void;
  readonly fail: (error: unknown) => void;
}

/** What was settled at once, or a promise of it. */
function awaitable<T>(start: (settle: Settle<T>) => void): Awaitable<T> {
  let outcome: Outcome<T> | null = null;
  let tell: ((outcome: Outcome<T>) => void) | null = null;
  const take = (settled: Outcome<T>): void => {
    outcome = settled;
    tell?.(settled);
  };
  start({
    done: (answer) => take({ ok: true, answer, version: null }),
    fail: (error) => take({ ok: false, error }),
  });
  const atOnce = outcome as Outcome<T> | null;
  if (atOnce !== null) {
    if (atOnce.ok) return atOnce.answer;
    throw atOnce.error;
  }
  return new Promise((resolve, reject) => {
    tell = (settled) => (settled.ok ? resolve(settled.answer) : reject(settled.error));
  });
}
