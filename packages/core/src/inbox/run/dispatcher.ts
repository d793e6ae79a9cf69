/**
 * Asks the store which events are due, and hands them to the runs of this process: {@link Dispatcher} polls,
 * `Runs.beginDue` begins.
 *
 * These calls ask for a poll: `wake` (at a start or after a decision), `onHint` (another process has stored an event),
 * `onPlaceFreed` (a run has left its place), `onPostponed` (this process has put an event off) and `onStored` (it has
 * stored an event without beginning it). Each call only sets the time of the next poll.
 *
 * A poll asks for as many events as there are places to spare (`takeableCount`), hands each to `begin`, and sets the time of
 * the next poll. One poll is under way at a time. A call that comes during a poll makes another poll follow.
 */

import { type HeapEntry, IndexedHeap } from "../../collections/indexed-heap.ts";
import { inboxErrorNotice } from "../../notices/notice.ts";
import { jitterOf } from "../../time/jitter.ts";
import type { Runner } from "../contract/inbox.ts";
import type { DueRecord } from "../contract/store.ts";
import { isUnreadable } from "../record/codec.ts";
import { LANES, type Lane, type Lanes } from "../record/lane.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import type { Crowds } from "./crowds.ts";
import { HeadStarts } from "./head-starts.ts";
import type { Places } from "./places.ts";

export interface DispatcherDependencies {
  readonly core: Pick<InboxCore, "store" | "environment" | "operations" | "hideMs">;
  /** How many events may be taken now. */
  readonly places: Places;
  /** Learns from the dispatcher when no event waits. */
  readonly crowds: Crowds;
  /** The dispatcher polls at least this often; `Infinity` if no other process can add events. */
  readonly pollMs: number;
}

/** The runner of due events, and the call that begins one. */
interface Starter {
  readonly runner: Runner;
  /** Begins the next event of a record that the store handed out. */
  readonly begin: (record: DueRecord) => void;
}

/** How long to wait after a failed poll, or `pollMs` if that is shorter. The next poll never comes earlier. */
const FAILED_POLL_DELAY_MS = 500;
/**
 * How long to wait after a poll that found nothing, or `pollMs` if that is shorter. One due event often wakes many
 * processes, and only one of them gets it. The wait is short because due records that another session of the database
 * has locked are soon free.
 */
const EMPTY_POLL_DELAY_MS = 50;
/**
 * Another process may have put a record off. When the record falls due, that process polls at once, if it is alive.
 * This process gives it a head start of one to two times this long. If `pollMs` is shorter, the usual poll comes
 * earlier.
 */
const FOREIGN_POLL_DELAY_MS = 500;
/**
 * A process remembers the due times of this many events that it has put off itself. It finds further events like those
 * of other processes.
 */
const MAX_POSTPONED_EVENTS = 10_000;
/** A time that is nearer than this counts as now. A timer that fires up to a millisecond too early is set again. */
const TIMER_TOLERANCE_MS = 0.05;

/** True for a record that this process cannot read, or whose flow it does not have. */
function isForOthers(record: DueRecord["record"], { hasFlow }: Runner): boolean {
  return isUnreadable(record) || hasFlow?.(record.flow) === false;
}

/** The due time of an event that this process has put off (monotonic clock). */
interface PostponedEvent extends HeapEntry {
  readonly at: number;
}

/**
 * Polls every `pollMs`, when another process announces something, and when a place becomes free after a poll that found
 * more events than places.
 *
 * When an event falls due that this process has put off, this process polls at that moment. The other processes may
 * know the due time from a poll. They wait a little longer, because otherwise each retry would wake every process.
 */
export class Dispatcher {
  readonly #core: DispatcherDependencies["core"];
  readonly #places: Places;
  readonly #crowds: Crowds;
  readonly #pollMs: number;
  /** Null until {@link start}, so nothing is taken. */
  #starter: Starter | null = null;
  #isStopped = false;
  #isPaused = false;
  #polling: Promise<void> | null = null;
  /** Something was announced while a poll was under way, so another poll follows. */
  #pollAgain = false;
  #isBacklog: Lanes<boolean> = { usual: false, patient: false };
  /** If events of both lanes wait for an odd number of places, the patient lane gets the odd place every other time. */
  #isPatientsTurn = false;
  /** The last poll was given nothing, although events are due. */
  #wasLastPollEmpty = false;
  /** The due times of the events that this process has put off. */
  readonly #postponed = new IndexedHeap<PostponedEvent>((a, b) => a.at < b.at);
  #cancelTimer: (() => void) | null = null;
  /** After a poll that failed or found nothing, the next poll comes no earlier than this (monotonic clock). */
  #noPollBefore = Number.NEGATIVE_INFINITY;
  readonly #headStarts = new HeadStarts();
  /** When the timer fires, on the monotonic clock. */
  #timerAt = Number.POSITIVE_INFINITY;

  constructor({ core, places, crowds, pollMs }: DispatcherDependencies) {
    this.#core = core;
    this.#places = places;
    this.#crowds = crowds;
    this.#pollMs = pollMs;
  }

  /** From now on, due events are taken, and handed to `begin`. */
  start(runner: Runner, begin: Starter["begin"]): void {
    this.#starter = { runner, begin };
    this.#isStopped = false;
    this.#isPaused = false;
    this.wake(0);
  }

  get isStarted(): boolean {
    return this.#starter !== null;
  }

  /** True if the last poll found more events of this lane than places. Waiting events go before new events. */
  isBacklog(lane: Lane): boolean {
    return this.#isBacklog[lane];
  }

  /**
   * The runner that may run a new event of this lane at once. Null while other events of its lane, or usual events,
   * wait, because they go first.
   */
  runnerOfNew(lane: Lane): Runner | null {
    const mustWait = this.isBacklog("usual") || this.isBacklog(lane);
    return this.isTaking && !mustWait ? (this.#starter?.runner ?? null) : null;
  }

  /** False while this process must not begin anything by itself. */
  get isTaking(): boolean {
    return this.#starter !== null && !this.#isStopped && !this.#isPaused;
  }

  /** True if an event of this lane would be taken now. */
  canTake(lane: Lane): boolean {
    return this.isTaking && this.#places.takeableCount(lane) > 0;
  }

  /** Polls in `inMs` milliseconds, or earlier. */
  wake(inMs: number): void {
    if (!this.isTaking) return;
    const { environment } = this.#core;
    const now = environment.monotonic();
    let at = Math.max(now + inMs, this.#noPollBefore);
    if (at - now < TIMER_TOLERANCE_MS) at = now + this.#headStarts.waitMs(now);
    if (at - now < TIMER_TOLERANCE_MS) {
      this.#poll();
      return;
    }
    if (at >= this.#timerAt) return;
    this.#cancelTimer?.();
    this.#timerAt = at;
    this.#cancelTimer = environment.after(at - now, () => {
      this.#forgetTimer();
      this.wake(at - environment.monotonic());
    });
  }

  /** This process has put off an event that falls due in `inMs` milliseconds. */
  onPostponed(inMs: number): void {
    if (!this.isStarted) return;
    const at = this.#core.environment.monotonic() + inMs;
    if (inMs > 0 && this.#postponed.size < MAX_POSTPONED_EVENTS) this.#postponed.add({ at, position: 0 });
    this.wake(inMs);
  }

  /** This process has accepted an event without beginning it. The event falls due in `inMs` milliseconds. */
  onStored(inMs: number, lane: Lane): void {
    if (!this.isStarted) return;
    if (inMs > 0 || this.#places.takeableCount(lane) > 0) this.onPostponed(inMs);
    else this.#isBacklog = { ...this.#isBacklog, [lane]: true };
  }

  /** Another process has announced an event. Returns false if there is no place for it here. */
  onHint(): boolean {
    if (!this.canTake("usual")) return false;
    this.wake(0);
    return true;
  }

  /** A place has become free for events of this lane. */
  onPlaceFreed(lane: Lane): void {
    if (this.#isBacklog[lane] && this.#places.takeableCount(lane) > 0) this.wake(0);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.wake(0);
  }

  stop(): void {
    this.#isStopped = true;
    this.#forgetTimer();
  }

  #forgetTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  /** Polls in a later turn, so that the caller does not wait for it. */
  #poll(): void {
    if (this.#polling !== null) {
      this.#pollAgain = true;
      return;
    }
    this.#polling = new Promise((resolve) => {
      this.#core.environment.nextTurn(() => void this.#pollOnce().then(resolve));
    });
  }

  /** Resolves once no poll is under way. */
  async atRest(): Promise<void> {
    await this.#polling;
  }

  /**
   * How many events to take of each lane. If one lane needs all places, and no event is known to wait in the other
   * lane, the poll takes nothing from that other lane. The store's answer says whether more is due there.
   */
  #pollLimit(): Lanes {
    const free = this.#places.takeableCount("usual");
    const spare = this.#isBacklog.patient ? Math.min(free, this.#places.takeableCount("patient")) : 0;
    if (!this.#isBacklog.usual) return { usual: free - spare, patient: spare };
    this.#isPatientsTurn = !this.#isPatientsTurn;
    const half = this.#isPatientsTurn ? Math.ceil(free / 2) : Math.floor(free / 2);
    const patient = Math.min(spare, half);
    return { usual: free - patient, patient };
  }

  async #pollOnce(): Promise<void> {
    const { store, hideMs, operations } = this.#core;
    const places = this.#places;
    const pollMs = this.#pollMs;
    let nextMs = pollMs;
    const starter = this.#starter;
    this.#pollAgain = false;
    this.#forgetTimer();
    try {
      if (!this.isTaking || starter === null) return;
      const askedAt = this.#forgetPast();
      this.#headStarts.onPoll(askedAt);
      const limit = this.#pollLimit();
      if (limit.usual + limit.patient === 0) {
        // There may be events. The next place that becomes free polls again.
        this.#isBacklog = { usual: true, patient: true };
        return;
      }
      const { records, left, nextDueAt } = await store.takeDue(limit, hideMs);
      this.#isBacklog = { usual: left.usual > 0, patient: left.patient > 0 };
      if (records.length + left.usual + left.patient === 0) this.#crowds.onEmptyPoll(askedAt);
      const waitingLanes = LANES.filter((lane) => left[lane] > 0 && places.takeableCount(lane) > 0);
      // More is due in a lane from which this poll took nothing. If the previous poll got nothing either, the due
      // records are locked.
      const wasLeftOut = !this.#wasLastPollEmpty && waitingLanes.some((lane) => limit[lane] === 0);
      this.#wasLastPollEmpty = records.length === 0 && left.usual + left.patient > 0;
      if (records.length === 0 && !wasLeftOut && !this.#isAlone)
        this.#pauseFor(Math.min(pollMs, EMPTY_POLL_DELAY_MS));
      if (records.some(({ record }) => isForOthers(record, starter.runner)))
        this.#headStarts.give(askedAt + hideMs);
      for (const record of records) starter.begin(record);
      if (waitingLanes.some((lane) => places.takeableCount(lane) > 0)) {
        if (records.length > 0 || wasLeftOut) this.#pollAgain = true;
        else nextMs = Math.min(pollMs, EMPTY_POLL_DELAY_MS);
      }
      if (nextDueAt !== null) nextMs = Math.min(nextMs, this.#foreignPollDelayMs(nextDueAt - store.now("")));
    } catch (error) {
      operations.recordCanaryFailure("take", error);
      starter?.runner.notify(inboxErrorNotice("take", error));
      nextMs = Math.min(pollMs, FAILED_POLL_DELAY_MS);
      this.#pauseFor(nextMs);
    } finally {
      this.#polling = null;
      const nextPostponedAt = this.#postponed.peek()?.at ?? Number.POSITIVE_INFINITY;
      this.wake(this.#pollAgain ? 0 : Math.min(nextMs, nextPostponedAt - this.#core.environment.monotonic()));
    }
  }

  /** Forgets all own due times up to now, because the poll that begins now is for them. Returns now. */
  #forgetPast(): number {
    const now = this.#core.environment.monotonic();
    for (
      let entry = this.#postponed.peek();
      entry !== undefined && entry.at - now < TIMER_TOLERANCE_MS;
      entry = this.#postponed.peek()
    ) {
      this.#postponed.remove(entry);
    }
    return now;
  }

  /** If no other process can add events, nobody else polls either. */
  get #isAlone(): boolean {
    return this.#pollMs === Number.POSITIVE_INFINITY;
  }

  #pauseFor(ms: number): void {
    this.#noPollBefore = this.#core.environment.monotonic() + ms;
  }

  /** A record that another process may have put off falls due in `dueInMs`. Returns in how many milliseconds to poll for it. */
  #foreignPollDelayMs(dueInMs: number): number {
    if (this.#isAlone) return Math.max(1, dueInMs);
    return Math.max(1, dueInMs) + FOREIGN_POLL_DELAY_MS * (0.5 + jitterOf(this.#core.environment.token()));
  }
}
