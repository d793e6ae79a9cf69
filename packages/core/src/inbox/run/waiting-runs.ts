import type { Environment } from "../../time/environment.ts";
import type { Lane } from "../record/lane.ts";
import { LaneQueues } from "./lane-queues.ts";
import type { Places } from "./places.ts";
import type { Run } from "./run.ts";

/** A begun run in its queue. */
interface WaitingRun {
  readonly lane: Lane;
  readonly run: Run;
  /** When it came (monotonic clock). */
  readonly since: number;
}

/** A run that has left its place. `enter` gives it the next one. */
interface ReturningRun {
  readonly lane: Lane;
  readonly enter: () => void;
}

/** Runs that wait for a place. A run that has left its place and waits for another one goes before a run that was only begun. */
export class WaitingRuns {
  readonly #begunRuns = new LaneQueues<WaitingRun>();
  readonly #returningRuns = new LaneQueues<ReturningRun>();
  readonly #places: Places;
  readonly #environment: Environment;
  readonly #callHandlers: (run: Run) => void;
  #isStarting = false;

  /** @param callHandlers calls the handlers of a run that has its place */
  constructor(places: Places, environment: Environment, callHandlers: (run: Run) => void) {
    this.#places = places;
    this.#environment = environment;
    this.#callHandlers = callHandlers;
  }

  /** True if no begun run of this lane waits. */
  isEmpty(lane: Lane): boolean {
    return this.#begunRuns.isEmpty(lane);
  }

  /** Adds a begun run. It starts in a later turn, so that the answer to the delivery is written first. */
  add(run: Run): void {
    this.#begunRuns.push({ lane: run.lane, run, since: this.#environment.monotonic() });
    if (this.#isStarting) return;
    this.#isStarting = true;
    this.#environment.nextTurn(() => {
      this.#isStarting = false;
      this.fill();
    });
  }

  /** Resolves once a run that had left its place has one again. */
  comeBack(run: Run): Promise<void> {
    return new Promise((resolve) => {
      const enter = (): void => {
        run.releasePlace = this.#places.enter(run.lane);
        resolve();
      };
      this.#returningRuns.push({ lane: run.lane, enter });
      this.fill();
    });
  }

  /**
   * Gives all free places to waiting runs, including a place that has just become free. If a turn of the event loop started fewer
   * runs than are begun, more and more runs would wait.
   */
  fill(): void {
    const hasFreePlace = (lane: Lane): boolean => this.#places.hasFreePlace(lane);
    for (
      let returning = this.#returningRuns.next(hasFreePlace);
      returning !== undefined;
      returning = this.#returningRuns.next(hasFreePlace)
    ) {
      returning.enter();
    }
    for (
      let next = this.#begunRuns.next(hasFreePlace);
      next !== undefined;
      next = this.#begunRuns.next(hasFreePlace)
    ) {
      next.run.releasePlace = this.#places.enter(next.lane);
      this.#callHandlers(next.run);
    }
  }

  /** Removes the begun runs that have waited for this long. */
  removeLongWaiting(waitedMs: number): readonly Run[] {
    const before = this.#environment.monotonic() - waitedMs;
    return this.#remove(({ since }) => since <= before);
  }

  removeAll(): readonly Run[] {
    return this.#remove(() => true);
  }

  #remove(isWanted: (waiting: WaitingRun) => boolean): readonly Run[] {
    return [...this.#begunRuns.takeWhile(isWanted)].map(({ run }) => run);
  }

  /** Lets all runs come back that had left their place, even if no place is free. */
  letAllBack(): void {
    for (const { enter } of this.#returningRuns.takeAll()) enter();
  }
}
