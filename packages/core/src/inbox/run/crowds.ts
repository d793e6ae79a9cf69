import type { Clock } from "../../time/clock.ts";
import type { StoredDelivery } from "../record/event.ts";
import type { Lane } from "../record/lane.ts";
import type { Places } from "./places.ts";

/** The kind of an event: its tenant and its name. */
export interface CrowdMember {
  readonly name: string;
  readonly delivery: Pick<StoredDelivery, "tenant">;
}

/** All counts of waiting events begin anew after this time, because other processes may have run some of these events. */
const WAITING_COUNTS_TTL_MS = 60_000;

/**
 * Decides in which lane an event waits, so that a crowd of events does not keep all others waiting. The class counts
 * the running and waiting events of each tenant and name. They are a crowd if they are at least a quarter of the places
 * of this process, and more than half of the average count. Further events of this tenant and name then go to the
 * patient lane.
 */
export class Crowds {
  readonly #places: Places;
  readonly #clock: Clock;
  readonly #running = new KindCounts();
  /** The running events of the patient lane. */
  readonly #runningPatient = new KindCounts();
  #waiting = new KindCounts();
  /** When the count of waiting events began, and when the last of them came (monotonic clock). */
  #waitingSince: number;
  #lastCameAt = Number.NEGATIVE_INFINITY;

  constructor(places: Places, clock: Clock) {
    this.#places = places;
    this.#clock = clock;
    this.#waitingSince = clock.monotonic();
  }

  /** The lane of an event that is new. */
  assignLane(event: CrowdMember): Lane {
    if (this.#clock.monotonic() - this.#waitingSince >= WAITING_COUNTS_TTL_MS) this.#forget();
    const kind = kindOf(event);
    if (this.#isCrowd(kind)) return "patient";
    this.#keepPlacesFree(kind);
    return "usual";
  }

  #isCrowd(kind: string): boolean {
    const [running, waiting] = [this.#running, this.#waiting];
    const ownCount = running.countOf(kind) + waiting.countOf(kind);
    const average = (running.sum + waiting.sum) / Math.max(running.kinds, waiting.kinds, 1);
    return this.#places.isAtLeastQuarter(ownCount) && ownCount * 2 > average;
  }

  /** A usual event comes. If a crowd of other events runs, some places are kept free of that crowd. */
  #keepPlacesFree(kind: string): void {
    if (this.#runningPatient.hasOtherThan(kind)) this.#places.keepFree();
  }

  /** An event is being accepted, or handed back. Call the returned function if there is nothing to run after all. */
  countWaiting(event: CrowdMember): () => void {
    const waiting = this.#waiting;
    const kind = kindOf(event);
    waiting.add(kind);
    this.#lastCameAt = this.#clock.monotonic();
    return () => waiting.remove(kind);
  }

  /** A run was begun, so its event waits no longer. */
  countBegun(event: CrowdMember, lane: Lane): void {
    const kind = kindOf(event);
    if (lane === "usual") this.#keepPlacesFree(kind);
    this.#waiting.remove(kind);
    this.#running.add(kind);
    if (lane === "patient") this.#runningPatient.add(kind);
  }

  /** A run that was begun has ended. */
  countEnded(event: CrowdMember, lane: Lane): void {
    const kind = kindOf(event);
    this.#running.remove(kind);
    if (lane === "patient") this.#runningPatient.remove(kind);
  }

  /** A poll that was begun at this time (monotonic clock) has found nothing due, so no event from before it still waits. */
  onEmptyPoll(polledAt: number): void {
    if (this.#lastCameAt < polledAt) this.#forget();
  }

  #forget(): void {
    this.#waiting = new KindCounts();
    this.#waitingSince = this.#clock.monotonic();
  }
}

function kindOf({ name, delivery }: CrowdMember): string {
  const { tenant } = delivery;
  return `${tenant.length}:${tenant}${name}`;
}

/** How many there are of each kind. */
class KindCounts {
  readonly #counts = new Map<string, number>();
  sum = 0;

  get kinds(): number {
    return this.#counts.size;
  }

  countOf(kind: string): number {
    return this.#counts.get(kind) ?? 0;
  }

  hasOtherThan(kind: string): boolean {
    return this.#counts.size > (this.#counts.has(kind) ? 1 : 0);
  }

  add(kind: string): void {
    this.#counts.set(kind, this.countOf(kind) + 1);
    this.sum++;
  }

  /** Counts one less, if there is any. */
  remove(kind: string): void {
    const count = this.countOf(kind);
    if (count === 0) return;
    this.sum--;
    if (count > 1) this.#counts.set(kind, count - 1);
    else this.#counts.delete(kind);
  }
}
