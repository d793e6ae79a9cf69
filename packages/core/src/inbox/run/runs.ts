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

import { InFlight } from "../../collections/in-flight.ts";
import { inboxError } from "../../notices/notice.ts";
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
import type { Crowds } from "./crowds.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { HiddenRecords } from "./hidden-records.ts";
import type { Places } from "./places.ts";
import { Run, type RunHost, type RunRequest } from "./run.ts";
import { groupSizeOf, Suspects } from "./suspects.ts";
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
const BROKEN = { unreadable: "the end of its last run could not be computed" };

/** All runs of this process. Each waits for the write that begins it, then for a place, and runs. A record has at most one. */
export class Runs {
  readonly places: Places;
  readonly crowds: Crowds;
  readonly #core: InboxCore;
  readonly #host: RunHost;
  readonly #dispatcher: Dispatcher;
  /** The runs by the key of their record. */
  readonly #active = new InFlight<string, Run>();
  readonly #hidden: HiddenRecords;
  readonly #taken: TakenEvents;
  readonly #waiting: WaitingRuns;
  readonly #suspects = new Suspects();
  readonly #broken = new BrokenRecords();
  #isWatching = false;
  /** Cancels the timer that renews leases; null if there is none. */
  #cancelRenewal: (() => void) | null = null;
  #whenAtRest: (() => void)[] = [];
  /** The callers that wait until the record with this key has no run. */
  readonly #whenFree = new Map<string, (() => void)[]>();

  constructor({ core, places, crowds, dispatcher, accept }: RunsDependencies) {
    this.#core = core;
    this.places = places;
    this.crowds = crowds;
    this.#dispatcher = dispatcher;
    this.#hidden = new HiddenRecords(core);
    this.#taken = new TakenEvents(places, core.environment);
    this.#waiting = new WaitingRuns(places, core.environment, (run) => void this.#run(run));
    this.#host = {
      accept,
      hasRoom: (lane) => dispatcher.canTake(lane),
      mayRunSuspect: (key, groupSize) => this.#suspects.tryJoin(key, groupSize),
      leavePlace: (run) => this.#leavePlace(run),
    };
  }

  has(key: string): boolean {
    return this.#active.has(key);
  }

  /**
   * True if an event of this lane may be begun as it is accepted: it gets its place soon, and overtakes no event that was taken.
   */
  mayBegin(lane: Lane): boolean {
    return this.#taken.isEmpty(lane) && this.places.isSoon(lane) && this.places.spareFor(lane) > 0;
  }

  /** Reserves the record and a place for a run, before the write that begins it. */
  reserve(key: string, request: RunRequest): Run {
    this.places.reserve(request.lane ?? "usual");
    const run = new Run(key, request, this.#core, this.#host);
    this.#active.set(key, run);
    this.#core.records.remember(key);
    return run;
  }

  /** Gives up a run that has begun nothing. If a poll was given its record meanwhile, others see the record again. */
  async giveUp(run: Run): Promise<void> {
    await this.#hidden.unhideIfHidden(run.key, run.runner);
    this.#giveBack(run);
  }

  /** Gives the record and the place back. */
  #giveBack({ key, lane }: Run): void {
    this.#active.delete(key);
    this.#hidden.delete(key);
    this.#suspects.leave(key);
    this.#core.records.forget(key);
    this.places.giveBack(lane);
    this.#beginTaken();
    this.#notifyPlaceFreed();
    const waiting = this.#whenFree.get(key);
    this.#whenFree.delete(key);
    for (const resolve of waiting ?? []) resolve();
    if (this.#active.size > 0) return;
    for (const resolve of this.#whenAtRest.splice(0)) resolve();
    // In other stores the timer fires once more. That is cheaper than a new timer for each run.
    if (this.#core.store.sleeps === true) this.#cancelRenewal?.();
  }

  #notifyPlaceFreed(): void {
    // While events still wait here for a place, do not poll for each free place. Wait until half of the places are free.
    for (const lane of LANES) {
      const isIdle = this.#waiting.isEmpty(lane) && this.#taken.isEmpty(lane);
      if (isIdle || this.places.isHalfEmpty(lane)) this.#dispatcher.onPlaceFreed(lane);
    }
  }

  /** Resolves once nothing of this process is begun or runs. */
  atRest(): Promise<void> {
    if (this.#active.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenAtRest.push(resolve));
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
    if (isUnreadable(record) || this.#broken.has(key)) {
      // If the record can be read one day, a person has repaired it.
      if (isUnreadable(record)) this.#broken.delete(key);
      const why = isUnreadable(record) ? record : BROKEN;
      // The record stays hidden for a while, so the next poll does not find it again.
      runner.notify(inboxError("take", unreadableError(why)));
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
    this.#taken.add(due, request, lane);
    this.#watch();
    this.#beginTaken();
    return null;
  }

  /** Begins taken events while a place is nearly free. */
  #beginTaken(): void {
    for (const { due, request } of this.#taken.removeReady()) void this.#beginNow(due, request);
  }

  async #beginNow(due: DueRecord, request: RunRequest): Promise<Run | null> {
    // A delivery may have begun the event since the poll.
    if (this.#isRunning(due.key)) return null;
    const run = this.reserve(due.key, request);
    try {
      const begun = await run.writeBegin("next", due);
      if (begun.kind === "leased") {
        this.#core.operations.succeeded("take");
        this.start(run);
        return run;
      }
    } catch (error) {
      this.#core.operations.failed("take", error);
      request.runner.notify(inboxError("begin", error));
    }
    await this.giveUp(run);
    return null;
  }

  /** True if a record that a poll got runs here. The record becomes visible to other processes again when its run has ended. */
  #isRunning(key: string): boolean {
    const isRunning = this.has(key);
    if (isRunning) this.#hidden.add(key);
    return isRunning;
  }

  /** Makes a taken record visible again, because it is not begun here. */
  async #returnTaken(due: DueRecord, request: RunRequest): Promise<void> {
    if (this.#isRunning(due.key)) return;
    const run = this.reserve(due.key, request);
    await this.#hidden.unhide(run.key, run.runner, due);
    await this.giveUp(run);
  }

  #returnAll(taken: readonly TakenEvent[]): void {
    for (const { due, request } of taken) void this.#returnTaken(due, request);
  }

  /** Waits until a suspected record may run. Meanwhile the store may hand it to another process. */
  async #mayRun(key: string, groupSize: number, isWanted: () => boolean): Promise<boolean> {
    if (!(await this.#suspects.wait(key, groupSize))) return false;
    if (isWanted() && !this.#core.isClosing && !this.has(key)) return true;
    if (!this.has(key)) this.#suspects.leave(key);
    return false;
  }

  /** Resolves once no other event of the same record is begun or runs here. */
  async othersEnded(eventId: string): Promise<void> {
    const key = recordKeyOf(eventId);
    for (
      let other = this.#active.get(key);
      other?.isRunOf(eventId) === false;
      other = this.#active.get(key)
    ) {
      await new Promise<void>((resolve) => {
        const waiting = this.#whenFree.get(key);
        if (waiting === undefined) this.#whenFree.set(key, [resolve]);
        else waiting.push(resolve);
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
    let begun: BeginResult;
    try {
      begun = await run.writeBegin(slotKeyOf(eventId));
    } catch (error) {
      await this.giveUp(run);
      throw error;
    }
    if (begun.kind === "leased") {
      this.start(run);
      return (await run.whenEnded).report;
    }
    await this.giveUp(run);
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

  /** Starts a run whose beginning was written: at once, or in the background when it gets a place. */
  start(run: Run): void {
    run.confirmed();
    this.crowds.countBegun(run.input, run.lane);
    for (const facts of run.input.overtaken) run.runner.notify({ type: "stale", ...facts });
    if (!run.inBackground) this.#startNow(run);
    // A poll that was under way at the stop may still begin something.
    else if (!this.#dispatcher.isTaking && !this.#core.isClosing) void this.#handBack(run);
    else {
      this.#waiting.add(run);
      this.#watch();
    }
  }

  #startNow(run: Run): void {
    run.leave = this.places.enter(run.lane);
    this.#core.environment.nextTurn(() => void this.#run(run));
  }

  /** Starts all begun runs, even without a place. They run to their end, or are handed back. */
  startAll(): void {
    this.#returnAll(this.#taken.removeAll());
    this.places.open(null);
    this.#waiting.letAllBack();
    for (const run of this.#waiting.removeAll()) this.#startNow(run);
    if (this.#core.store.endsWithProcess !== true) this.#endWaiting();
  }

  /**
   * Hands back taken records, and runs that have not started or that wait. Another process takes them, or this process
   * after its next start.
   */
  handBackWaiting(): void {
    this.#returnAll(this.#taken.removeAll());
    for (const run of this.#waiting.removeAll()) void this.#handBack(run);
    this.#endWaiting();
  }

  #endWaiting(): void {
    for (const [, run] of this.#active.entries()) run.waitNoLonger();
  }

  /** Posts a warning about every run that has not ended. Returns how many of them have called a handler. */
  abandon(): number {
    let called = 0;
    this.#endWaiting();
    for (const [, run] of this.#active.entries()) {
      if (run.hasCalledHandler) called++;
      run.warnOfDouble("closed-while-running");
    }
    return called;
  }

  async #run(run: Run): Promise<void> {
    this.#keepRenewing();
    const end = await run.callHandlers();
    // The handlers are done. Other runs may use the place while the end is written.
    run.leave(true);
    this.#waiting.fill();
    await this.#end(run, end);
  }

  /**
   * A run waits for something other than a place. Until it comes back, it counts neither as running nor as begun, so
   * others may run and be begun instead.
   */
  #leavePlace(run: Run): (comesBackInTurn: boolean) => Promise<void> {
    const { lane, inBackground } = run;
    run.leave(false);
    this.places.giveBack(lane);
    this.#beginTaken();
    this.#notifyPlaceFreed();
    this.#waiting.fill();
    return async (comesBackInTurn) => {
      this.places.reserve(lane);
      if (comesBackInTurn && inBackground) await this.#waiting.comeBack(run);
      else run.leave = this.places.enter(lane);
    };
  }

  /** Hands back a run before any handler was called. The event then waits for the first process that has a place. */
  async #handBack(run: Run): Promise<void> {
    this.crowds.countWaiting(run.input);
    await this.#end(run, { ending: { kind: "handed-back" }, changes: run.undoneStart, written: () => {} });
  }

  /** Writes the end of a run, and what follows from it. */
  async #end(run: Run, end: RunEnd): Promise<void> {
    const { key, runner } = run;
    const finished = await run.writeEnd(end);
    const isWritten = finished.kind === "ended";
    if (isWritten) {
      end.written();
      for (const facts of finished.overtaken) runner.notify({ type: "stale", ...facts });
      if (finished.closing !== null) await this.#close(run, finished.version, finished.closing);
    }
    if (finished.kind === "unreadable") this.#broken.add(key);
    else await this.#hidden.unhideIfHidden(key, runner);
    this.crowds.countEnded(run.input, run.lane);
    run.resolveEnded(isWritten, end.ending);
    this.#giveBack(run);
    if (isWritten && finished.dueInMs !== null) this.#dispatcher.onPostponed(finished.dueInMs);
  }

  /** Lets the claims of a record expire with the record. */
  async #close({ key, runner }: Run, version: string | null, closing: FinishedClaims): Promise<void> {
    if (this.#core.isAbandoned) return;
    const closed = this.#core.claims.close(key, version, closing);
    await closed.catch((error: unknown) => runner.notify(inboxError("claim", error)));
  }

  /** Hands back the events that have waited too long, and repeats that while any event waits. */
  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    const { environment } = this.#core;
    environment.after(HAND_BACK_AFTER_MS, () => {
      this.#isWatching = false;
      const late = this.#taken.removeLongWaiting(HAND_BACK_AFTER_MS);
      if (late.length > 0) this.places.runsTakeAtLeast(HAND_BACK_AFTER_MS);
      this.#returnAll(late);
      for (const run of this.#waiting.removeLongWaiting(HAND_BACK_AFTER_MS)) {
        this.places.runsTakeAtLeast(HAND_BACK_AFTER_MS);
        void this.#handBack(run);
      }
      if (LANES.some((lane) => !this.#waiting.isEmpty(lane) || !this.#taken.isEmpty(lane))) this.#watch();
    });
  }

  /** One timer renews every lease of this process. */
  #keepRenewing(): void {
    if (this.#cancelRenewal !== null) return;
    const { environment, renewEveryMs } = this.#core;
    const cancel = environment.after(renewEveryMs, () => {
      this.#cancelRenewal = null;
      if (this.#active.size === 0 || this.#core.isAbandoned) return;
      for (const [, run] of this.#active.entries()) void run.renew();
      this.#keepRenewing();
    });
    this.#cancelRenewal = () => {
      this.#cancelRenewal = null;
      cancel();
    };
  }
}
