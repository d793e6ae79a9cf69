/**
 * The way of an event through this process, from the store or from a delivery to the end of its run.
 *
 * 1. The dispatcher hands due records to `beginDue`, where they wait among the {@link TakenEvents} until a place is
 *   nearly free. Then a run is reserved and begun by a write. The acceptor instead calls `reserve`, begins the run in
 *   the write that accepts the event, and calls `start`.
 * 2. `start` adds the begun run to the {@link WaitingRuns}, which give it a place once one is free. `work`, `runEvent`
 *   and a close do not wait for places.
 * 3. `#run` makes the receiver's runner call the handlers, while one timer renews all leases. `#end` writes the end of the run.
 * 4. `#giveBack` gives record and place back, begins more of the taken events, and notifies the dispatcher, which may poll.
 *
 * An event that waits for longer than a quarter of a second is handed back. A pause or a close hands back every event that waits.
 */

import { InFlightMap } from "../../collections/in-flight-map.ts";
import { inboxErrorNotice } from "../../notices/notice.ts";
import { type AsyncContext, emptyContext } from "../../time/async-context.ts";
import type { Inbox, RunEnd, Runner } from "../contract/inbox.ts";
import type { DueRecord } from "../contract/store.ts";
import { isUnreadable } from "../record/codec.ts";
import { type RunReport, recordKeyOf, slotKeyOf } from "../record/event.ts";
import { LANES, type Lane } from "../record/lane.ts";
import { type BeginResult, suspicionsOf } from "../record/leased-run.ts";
import type { FinishedClaims } from "../record/reference-claim.ts";
import { dueTimeOf } from "../record/schedule.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { unreadableError } from "../write/records.ts";
import { BrokenRecords } from "./broken-records.ts";
import { CrashSuspects, groupSizeOf } from "./crash-suspects.ts";
import type { Crowds } from "./crowds.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { HiddenRecords } from "./hidden-records.ts";
import type { Places } from "./places.ts";
import { Run, type RunHost, type RunRequest } from "./run.ts";
import { type TakenEvent, TakenEvents } from "./taken-events.ts";
import { WaitingRuns } from "./waiting-runs.ts";

export interface RunsDependencies {
  readonly core: InboxCore;
  readonly places: Places;
  readonly crowds: Crowds;
  readonly dispatcher: Dispatcher;
  /** Accepts an event that a run has read from a held delivery. */
  readonly accept: Inbox["accept"];
}

/** How to begin an event that is due. */
export type DueRequest = Pick<RunRequest, "runner" | "inBackground">;

/** An event that gets no place within this time is handed back, because handlers have become slower than when it was taken. */
const HAND_BACK_AFTER_MS = 250;
const UNREADABLE_END = { unreadable: "the end of its last run could not be computed" };

/** All runs of this process. Each waits for the write that begins it, then for a place, and runs. A record has at most one. */
export class Runs {
  readonly places: Places;
  readonly crowds: Crowds;
  readonly #core: InboxCore;
  readonly #host: RunHost;
  readonly #dispatcher: Dispatcher;
  /** The runs by the key of their record. */
  readonly #activeRuns = new InFlightMap<string, Run>();
  readonly #hiddenRecords: HiddenRecords;
  readonly #takenEvents: TakenEvents;
  readonly #waitingRuns: WaitingRuns;
  readonly #crashSuspects = new CrashSuspects();
  readonly #brokenRecords = new BrokenRecords();
  #isWatching = false;
  /** Cancels the timer that renews leases; null if there is none. */
  #cancelRenewal: (() => void) | null = null;
  #restWaiters: (() => void)[] = [];
  /** The callers that wait until the record with this key has no run. */
  readonly #freeWaiters = new Map<string, (() => void)[]>();

  constructor({ core, places, crowds, dispatcher, accept }: RunsDependencies) {
    this.#core = core;
    this.places = places;
    this.crowds = crowds;
    this.#dispatcher = dispatcher;
    this.#hiddenRecords = new HiddenRecords(core);
    this.#takenEvents = new TakenEvents(places, core.environment);
    this.#waitingRuns = new WaitingRuns(places, core.environment, (run) => void this.#run(run));
    this.#host = {
      accept,
      hasRoom: (lane) => dispatcher.canTake(lane),
      mayRunCrashSuspect: (key, groupSize) => this.#crashSuspects.tryJoin(key, groupSize),
      leavePlace: (run) => this.#leavePlace(run),
    };
  }

  has(key: string): boolean {
    return this.#activeRuns.has(key);
  }

  /**
   * True if an event of this lane may be begun as it is accepted: it gets its place soon, and overtakes no event that was taken.
   */
  mayBegin(lane: Lane): boolean {
    return (
      this.#takenEvents.isEmpty(lane) && this.places.canBegin(lane) && this.places.takeableCount(lane) > 0
    );
  }

  /** Reserves the record and a place for a run, before the write that begins it. */
  reserve(key: string, request: RunRequest): Run {
    this.places.reserve(request.lane ?? "usual");
    const run = new Run(key, request, this.#core, this.#host);
    this.#activeRuns.set(key, run);
    this.#core.records.remember(key);
    return run;
  }

  /** Gives up a run that has begun nothing. If a poll was given its record meanwhile, others see the record again. */
  async giveUp(run: Run): Promise<void> {
    await this.#hiddenRecords.unhideIfHidden(run.key, run.runner);
    this.#giveBack(run);
  }

  /** Gives the record and the place back. */
  #giveBack({ key, lane }: Run): void {
    this.#activeRuns.delete(key);
    this.#hiddenRecords.delete(key);
    this.#crashSuspects.leave(key);
    this.#core.records.forget(key);
    this.places.giveBack(lane);
    this.#beginTaken();
    this.#notifyPlaceFreed();
    const waiters = this.#freeWaiters.get(key);
    this.#freeWaiters.delete(key);
    for (const resolve of waiters ?? []) resolve();
    if (this.#activeRuns.size > 0) return;
    for (const resolve of this.#restWaiters.splice(0)) resolve();
    // In other stores the timer fires once more. That is cheaper than a new timer for each run.
    if (this.#core.store.sleeps === true) this.#cancelRenewal?.();
  }

  #notifyPlaceFreed(): void {
    // While events still wait here for a place, do not poll for each free place. Wait until half of the places are free.
    for (const lane of LANES) {
      const isIdle = this.#waitingRuns.isEmpty(lane) && this.#takenEvents.isEmpty(lane);
      if (isIdle || this.places.isHalfEmpty(lane)) this.#dispatcher.onPlaceFreed(lane);
    }
  }

  /** Resolves once nothing of this process is begun or runs. */
  atRest(): Promise<void> {
    if (this.#activeRuns.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#restWaiters.push(resolve));
  }

  /**
   * Begins the next event of a record that the store handed out: a background event once a place is nearly free, any
   * other at once. An event that may have killed its process may have to wait first. After that wait, `isWanted` says
   * whether to begin it still. Null if no run was begun, or not yet.
   */
  async beginDue(
    due: DueRecord,
    { runner, inBackground }: DueRequest,
    isWanted: () => boolean,
  ): Promise<Run | null> {
    const { key, record } = due;
    if (this.#isRunning(key)) return null;
    if (isUnreadable(record) || this.#brokenRecords.has(key)) {
      // If the record can be read one day, a person has repaired it.
      if (isUnreadable(record)) this.#brokenRecords.delete(key);
      const unreadable = isUnreadable(record) ? record : UNREADABLE_END;
      // The record stays hidden for a while, so the next poll does not find it again.
      runner.notify(inboxErrorNotice("take", unreadableError(unreadable)));
      return null;
    }
    // The record stays hidden for a while, so that a process that has its flow finds it first.
    if (runner.hasFlow?.(record.flow) === false) return null;
    const lane = dueTimeOf(record)?.lane ?? "usual";
    const request: RunRequest = { runner, inBackground, lane, context: emptyContext };
    // The poll that found this record was under way at the stop.
    if (this.#core.isClosing || (inBackground && !this.#dispatcher.isTaking)) {
      await this.#returnTaken(due, request);
      return null;
    }
    const suspicions = suspicionsOf(record);
    if (suspicions.length > 0 && !(await this.#mayRun(key, groupSizeOf(suspicions, runner), isWanted)))
      return null;
    if (!inBackground) return this.#beginNow(due, request);
    this.#takenEvents.add(due, request, lane);
    this.#watchWaiting();
    this.#beginTaken();
    return null;
  }

  /** Begins taken events while a place is nearly free. */
  #beginTaken(): void {
    for (const { due, request } of this.#takenEvents.removeReady()) void this.#beginNow(due, request);
  }

  async #beginNow(due: DueRecord, request: RunRequest): Promise<Run | null> {
    // A delivery may have begun the event since the poll.
    if (this.#isRunning(due.key)) return null;
    const run = this.reserve(due.key, request);
    try {
      const result = await run.writeBegin("next", due);
      if (result.kind === "leased") {
        this.#core.operations.recordSuccess("take");
        this.start(run);
        return run;
      }
    } catch (error) {
      this.#core.operations.recordFailure("take", error);
      request.runner.notify(inboxErrorNotice("begin", error));
    }
    await this.giveUp(run);
    return null;
  }

  /** True if a record that a poll got runs here. The record becomes visible to other processes again when its run has ended. */
  #isRunning(key: string): boolean {
    const isRunning = this.has(key);
    if (isRunning) this.#hiddenRecords.add(key);
    return isRunning;
  }

  /** Makes a taken record visible again, because it is not begun here. */
  async #returnTaken(due: DueRecord, request: RunRequest): Promise<void> {
    if (this.#isRunning(due.key)) return;
    const run = this.reserve(due.key, request);
    await this.#hiddenRecords.unhide(run.key, run.runner, due);
    await this.giveUp(run);
  }

  #returnAll(takenEvents: readonly TakenEvent[]): void {
    for (const { due, request } of takenEvents) void this.#returnTaken(due, request);
  }

  /** Waits until a suspected record may run. Meanwhile the store may hand it to another process. */
  async #mayRun(key: string, groupSize: number, isWanted: () => boolean): Promise<boolean> {
    if (!(await this.#crashSuspects.wait(key, groupSize))) return false;
    if (isWanted() && !this.#core.isClosing && !this.has(key)) return true;
    if (!this.has(key)) this.#crashSuspects.leave(key);
    return false;
  }

  /** Resolves once no other event of the same record is begun or runs here. */
  async waitForOthers(eventId: string): Promise<void> {
    const key = recordKeyOf(eventId);
    for (
      let otherRun = this.#activeRuns.get(key);
      otherRun?.isRunOf(eventId) === false;
      otherRun = this.#activeRuns.get(key)
    ) {
      await new Promise<void>((resolve) => {
        const waiters = this.#freeWaiters.get(key);
        if (waiters === undefined) this.#freeWaiters.set(key, [resolve]);
        else waiters.push(resolve);
      });
    }
  }

  /** Runs one event now, even if every place is taken. */
  async runNow(
    runner: Runner,
    eventId: string,
    earlyBecause: "requested" | "last",
    context: AsyncContext,
  ): Promise<RunReport> {
    const key = recordKeyOf(eventId);
    if (this.has(key)) return { state: "running", ran: false };
    const run = this.reserve(key, { runner, context, inBackground: false, earlyBecause });
    let result: BeginResult;
    try {
      result = await run.writeBegin(slotKeyOf(eventId));
    } catch (error) {
      await this.giveUp(run);
      throw error;
    }
    if (result.kind === "leased") {
      this.#core.operations.recordSuccess("take");
      this.start(run);
      return run.report();
    }
    await this.giveUp(run);
    switch (result.kind) {
      case "missing":
        runner.notify({ type: "record-missing", eventId });
        return { state: null, ran: false };
      case "finished":
        return { state: result.state, ran: false };
      case "wait":
        return { state: result.isRunning ? "running" : "waiting", ran: false };
    }
  }

  /** Starts a run whose beginning was written: at once, or in the background when it gets a place. */
  start(run: Run): void {
    run.onBeginWritten();
    this.crowds.countBegun(run.input, run.lane);
    for (const facts of run.input.overtaken) run.runner.notify({ type: "stale", ...facts });
    if (!run.inBackground) this.#startNow(run);
    // A poll that was under way at the stop may still begin something.
    else if (!this.#dispatcher.isTaking && !this.#core.isClosing) void this.#handBack(run);
    else {
      this.#waitingRuns.add(run);
      this.#watchWaiting();
    }
  }

  #startNow(run: Run): void {
    run.releasePlace = this.places.enter(run.lane);
    this.#core.environment.nextTurn(() => void this.#run(run));
  }

  /** Starts all begun runs, even without a place. They run to their end, or are handed back. */
  startAll(): void {
    this.#returnAll(this.#takenEvents.removeAll());
    this.places.open(null);
    this.#waitingRuns.letAllBack();
    for (const run of this.#waitingRuns.removeAll()) this.#startNow(run);
    if (this.#core.store.endsWithProcess !== true) this.#endWaiting();
  }

  /**
   * Hands back taken records, and runs that have not started or that wait. Another process takes them, or this process
   * after its next start.
   */
  handBackWaiting(): void {
    this.#returnAll(this.#takenEvents.removeAll());
    for (const run of this.#waitingRuns.removeAll()) void this.#handBack(run);
    this.#endWaiting();
  }

  #endWaiting(): void {
    for (const [, run] of this.#activeRuns.entries()) run.waitNoLonger();
  }

  /** Posts a warning about every run that has not ended. Returns how many of them have called a handler. */
  abandon(): number {
    let calledCount = 0;
    this.#endWaiting();
    for (const [, run] of this.#activeRuns.entries()) {
      if (run.hasCalledHandler) calledCount++;
      run.warnOfDouble("closed-while-running");
    }
    return calledCount;
  }

  async #run(run: Run): Promise<void> {
    this.#keepRenewing();
    const end = await run.callHandlers();
    // The handlers are done. Other runs may use the place while the end is written.
    run.releasePlace(true);
    this.#waitingRuns.fill();
    await this.#end(run, end);
  }

  /**
   * A run waits for something other than a place. Until it comes back, it counts neither as running nor as begun, so
   * others may run and be begun instead.
   */
  #leavePlace(run: Run): (comesBackInTurn: boolean) => Promise<void> {
    const { lane, inBackground } = run;
    run.releasePlace(false);
    this.places.giveBack(lane);
    this.#beginTaken();
    this.#notifyPlaceFreed();
    this.#waitingRuns.fill();
    return async (comesBackInTurn) => {
      this.places.reserve(lane);
      if (comesBackInTurn && inBackground) await this.#waitingRuns.comeBack(run);
      else run.releasePlace = this.places.enter(lane);
    };
  }

  /** Hands back a run before any handler was called. The event then waits for the first process that has a place. */
  async #handBack(run: Run): Promise<void> {
    this.crowds.countWaiting(run.input);
    await this.#end(run, { outcome: { kind: "handed-back" }, changes: run.undoneStart, onWritten: () => {} });
  }

  /** Writes the end of a run, and what follows from it. */
  async #end(run: Run, end: RunEnd): Promise<void> {
    const { key, runner } = run;
    const { answer, version } = await run.writeEnd(end);
    const isWritten = answer.kind === "ended";
    if (isWritten) {
      end.onWritten();
      for (const facts of answer.overtaken) runner.notify({ type: "stale", ...facts });
      if (answer.claimsToClose !== null) await this.#closeClaims(run, version, answer.claimsToClose);
    }
    if (answer.kind === "unreadable") this.#brokenRecords.add(key);
    else await this.#hiddenRecords.unhideIfHidden(key, runner);
    this.crowds.countEnded(run.input, run.lane);
    run.resolveEnded(isWritten ? end.outcome.kind : null);
    this.#giveBack(run);
    if (isWritten && answer.nextDue !== null) this.#dispatcher.onPostponed(answer.nextDue.inMs);
  }

  /** Lets the claims of a record expire with the record. */
  async #closeClaims(
    { key, runner }: Run,
    version: string | null,
    claimsToClose: FinishedClaims,
  ): Promise<void> {
    if (this.#core.isAbandoned) return;
    const whenClosed = this.#core.claims.close(key, version, claimsToClose);
    await whenClosed.catch((error: unknown) => runner.notify(inboxErrorNotice("claim", error)));
  }

  /** Hands back the events that have waited too long, and repeats that while any event waits. */
  #watchWaiting(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    const { environment } = this.#core;
    environment.after(HAND_BACK_AFTER_MS, () => {
      this.#isWatching = false;
      const lateEvents = this.#takenEvents.removeLongWaiting(HAND_BACK_AFTER_MS);
      if (lateEvents.length > 0) this.places.recordMinRunMs(HAND_BACK_AFTER_MS);
      this.#returnAll(lateEvents);
      for (const run of this.#waitingRuns.removeLongWaiting(HAND_BACK_AFTER_MS)) {
        this.places.recordMinRunMs(HAND_BACK_AFTER_MS);
        void this.#handBack(run);
      }
      if (LANES.some((lane) => !this.#waitingRuns.isEmpty(lane) || !this.#takenEvents.isEmpty(lane)))
        this.#watchWaiting();
    });
  }

  /** One timer renews every lease of this process. */
  #keepRenewing(): void {
    if (this.#cancelRenewal !== null) return;
    const { environment, renewEveryMs } = this.#core;
    const cancel = environment.after(renewEveryMs, () => {
      this.#cancelRenewal = null;
      if (this.#activeRuns.size === 0 || this.#core.isAbandoned) return;
      for (const [, run] of this.#activeRuns.entries()) void run.renew();
      this.#keepRenewing();
    });
    this.#cancelRenewal = () => {
      this.#cancelRenewal = null;
      cancel();
    };
  }
}
