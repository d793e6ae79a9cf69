import type { Clock } from "../time/clock.ts";
import type { Lane } from "./record/lane.ts";

/** About how long a begun run may wait for a place. */
const WAIT_MS = 50;
/** The most runs that may wait for a place, however quick the handlers are. */
const MAX_WAITING = 256;
/** Weight of the newest run in the average. */
const NEWEST = 1 / 16;
/** The average that is assumed before any run has ended. If it is too low, runs that wait too long are handed back. */
const FIRST_GUESS_MS = 1;
/** Once others were met, places are kept free of a crowd for so long. */
const KEPT_FREE_MS = 60_000;

/**
 * Counts how many events may run at one time in this process, and how many more may be begun without a long wait for a place.
 * If handlers take a millisecond, these are many. If they take a second, there are none.
 *
 * Usual events may have all places. Patient ones have half of them while places are kept free for others, and otherwise all.
 */
export class Places {
  readonly #clock: Clock;
  /** Null while this process runs no events. */
  #concurrency: number | null = null;
  readonly #running = { usual: 0, patient: 0 };
  readonly #begun = { usual: 0, patient: 0 };
  #averageMs = FIRST_GUESS_MS;
  /** Until when places are kept free of a crowd (monotonic clock). */
  #keptUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sets how many events may run; with null, nothing more is begun. */
  open(concurrency: number | null): void {
    this.#concurrency = concurrency;
  }

  /** Others than a crowd are there. For a while, places are kept free for them. */
  keepFree(): void {
    this.#keptUntil = this.#clock.monotonic() + KEPT_FREE_MS;
  }

  /** True if so many events would take a quarter of the places. */
  isQuarter(events: number): boolean {
    return this.#concurrency !== null && events * 4 >= this.#concurrency;
  }

  /** How many events of a lane may be begun now. For usual ones, these are all that may be begun. */
  room(lane: Lane): number {
    if (this.#concurrency === null) return 0;
    const waiting = Math.min(MAX_WAITING, Math.floor((this.#concurrency * WAIT_MS) / this.#averageMs) - 1);
    const all = this.#concurrency + Math.max(0, waiting);
    const ofPatient = this.#shareOfPatient(all);
    const { usual, patient } = this.#begun;
    // A crowd that was begun while it was alone stands back behind others, but for what runs already.
    const taken = Math.max(Math.min(patient, ofPatient), this.#running.patient);
    const free = Math.max(0, all - usual - taken);
    return lane === "usual" ? free : Math.max(0, Math.min(free, ofPatient - patient));
  }

  isHalfEmpty(lane: Lane): boolean {
    const places = this.#concurrency ?? 0;
    return this.room(lane) * 2 >= (lane === "usual" ? places : this.#shareOfPatient(places));
  }

  /** True while there is a place for a begun run of this lane. */
  isFree(lane: Lane): boolean {
    const places = this.#concurrency ?? Number.POSITIVE_INFINITY;
    const { usual, patient } = this.#running;
    if (usual + patient >= places) return false;
    return lane === "usual" || patient < this.#shareOfPatient(places);
  }

  #shareOfPatient(places: number): number {
    return this.#clock.monotonic() < this.#keptUntil ? Math.max(1, Math.floor(places / 2)) : places;
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
  runsTakeAtLeast(ms: number): void {
    this.#averageMs = Math.max(this.#averageMs, ms);
  }

  /** A run starts; the returned function is called at its end. */
  enter(lane: Lane): () => void {
    this.#running[lane]++;
    const since = this.#clock.monotonic();
    return () => {
      this.#running[lane]--;
      const tookMs = Math.max(0.05, this.#clock.monotonic() - since);
      this.#averageMs += (tookMs - this.#averageMs) * NEWEST;
    };
  }
}
