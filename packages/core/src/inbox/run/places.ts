/**
 * How many events this process may run, begin and take. {@link Places} only counts: the dispatcher and the runs ask it
 * and report to it.
 *
 * Each lane has three counts, and an event passes through them. It counts as taken from `addTaken`, when a poll gets
 * it, until `removeTaken`. It counts as begun from `reserve`, before the write that begins it, until `giveBack`. It
 * counts as running from `enter`, when its handlers may be called, until the function that `enter` returns is called.
 * An event that is begun as it is accepted skips the first count.
 *
 * `takeableCount` says how many more may be taken, `canBegin` whether a taken one may be begun, and `hasFreePlace` whether a begun
 * one may run.
 */
import type { Clock } from "../../time/clock.ts";
import type { Lane } from "../record/lane.ts";

/** About how long an event that was taken may wait for a place. */
const PLACE_WAIT_MS = 50;
/** The most events that may wait for a place, however quick the handlers are. */
const MAX_WAITING_EVENTS = 256;
/** An event is begun when it will probably get its place within this time. */
const BEGIN_AHEAD_MS = 5;
/** The least weight of the newest run in the average. */
const NEWEST_WEIGHT = 1 / 16;
/**
 * A crowd is many events of one tenant and name (crowds.ts). After an event of another kind, some places are kept free
 * of the crowd for this long.
 */
const CROWD_LIMIT_MS = 60_000;

/**
 * Counts how many events may run at one time, how many more may be begun because a place is soon free, and how many
 * more may be taken from the store. If handlers take a millisecond, many are begun and taken ahead. If they take a
 * second, few are begun and none is taken ahead. Usual events may have all places. Patient events may have half of the
 * places while some are kept free for others, and otherwise all.
 */
export class Places {
  readonly #clock: Clock;
  /** Null while this process runs no events. */
  #concurrency: number | null = null;
  readonly #running = { usual: 0, patient: 0 };
  readonly #begun = { usual: 0, patient: 0 };
  /** Taken from the store, and not begun yet. */
  readonly #taken = { usual: 0, patient: 0 };
  /** How long runs take. Before the first has ended: so long that only the next few are begun. */
  #averageMs = Number.POSITIVE_INFINITY;
  /** How many runs have ended, up to as many as the average remembers. */
  #endedCount = 0;
  /** Until when places are kept free of a crowd (monotonic clock). */
  #keptFreeUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sets how many events may run; with null, nothing more is begun. */
  open(concurrency: number | null): void {
    this.#concurrency = concurrency;
  }

  /** An event that belongs to no crowd has come. For a while, places are kept free for such events. */
  keepFree(): void {
    this.#keptFreeUntil = this.#clock.monotonic() + CROWD_LIMIT_MS;
  }

  /** True if so many events would take a quarter of the places. */
  isAtLeastQuarter(events: number): boolean {
    return this.#concurrency !== null && events * 4 >= this.#concurrency;
  }

  /** How many events of a lane may be taken now. For the usual lane, this is the number for both lanes together. */
  takeableCount(lane: Lane): number {
    if (this.#concurrency === null) return 0;
    const waitingCount = Math.min(
      MAX_WAITING_EVENTS,
      Math.floor((this.#concurrency * PLACE_WAIT_MS) / this.#averageMs) - 1,
    );
    const total = this.#concurrency + Math.max(0, waitingCount);
    const patientShare = this.#shareOfPatient(total);
    const usual = this.#begun.usual + this.#taken.usual;
    const patient = this.#begun.patient + this.#taken.patient;
    // Patient events beyond their share take no place from usual ones, unless they run already.
    const crowd = Math.max(Math.min(patient, patientShare), this.#running.patient);
    const free = Math.max(0, total - usual - crowd);
    return lane === "usual" ? free : Math.max(0, Math.min(free, patientShare - patient));
  }

  isHalfEmpty(lane: Lane): boolean {
    const places = this.#concurrency ?? 0;
    return this.takeableCount(lane) * 2 >= (lane === "usual" ? places : this.#shareOfPatient(places));
  }

  /** True while there is a place for a begun run of this lane. */
  hasFreePlace(lane: Lane): boolean {
    const places = this.#concurrency ?? Number.POSITIVE_INFINITY;
    const { usual, patient } = this.#running;
    if (usual + patient >= places) return false;
    return lane === "usual" || patient < this.#shareOfPatient(places);
  }

  #shareOfPatient(places: number): number {
    return this.#clock.monotonic() < this.#keptFreeUntil ? Math.max(1, Math.floor(places / 2)) : places;
  }

  /**
   * True if an event that is begun now gets its place within a few milliseconds, or if the queue before it is at most a
   * quarter of the number of places. The write that begins an event also starts its first handler. So if the process
   * dies before the event has its place, the handler counts as called.
   */
  canBegin(lane: Lane): boolean {
    const places = this.#concurrency ?? Number.POSITIVE_INFINITY;
    const { usual, patient } = this.#begun;
    const ahead =
      1 + Math.max(usual + patient - places, lane === "usual" ? -1 : patient - this.#shareOfPatient(places));
    return ahead <= places / 4 || ahead * this.#averageMs <= places * BEGIN_AHEAD_MS;
  }

  /** An event was taken from the store, and waits until it may be begun. */
  addTaken(lane: Lane): void {
    this.#taken[lane]++;
  }

  /** An event that was taken no longer waits. */
  removeTaken(lane: Lane): void {
    this.#taken[lane]--;
  }

  /** An event is being begun. */
  reserve(lane: Lane): void {
    this.#begun[lane]++;
  }

  /** The event was not begun after all, or its run has ended. */
  giveBack(lane: Lane): void {
    this.#begun[lane]--;
  }

  /** A run that has not ended yet shows that runs take at least this long. */
  recordMinRunMs(ms: number): void {
    if (this.#endedCount > 0) this.#averageMs = Math.max(this.#averageMs, ms);
  }

  /** A run starts or continues. Call the returned function when the run ends, or leaves its place to others for a while. */
  enter(lane: Lane): (hasEnded: boolean) => void {
    this.#running[lane]++;
    const since = this.#clock.monotonic();
    return (hasEnded) => {
      this.#running[lane]--;
      if (!hasEnded) return;
      const tookMs = Math.max(0.05, this.#clock.monotonic() - since);
      this.#endedCount = Math.min(this.#endedCount + 1, 1 / NEWEST_WEIGHT);
      if (this.#endedCount === 1) this.#averageMs = tookMs;
      else this.#averageMs += (tookMs - this.#averageMs) / this.#endedCount;
    };
  }
}
