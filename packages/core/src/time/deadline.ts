import type { Clock } from "./clock.ts";

/** A race rejects with this if the time is up. */
export const TIME_IS_UP: unique symbol = Symbol("time is up");

/** Calls with a signal. If there is no answer within `ms`, the signal aborts, and this rejects with {@link TIME_IS_UP}. */
export async function callWithDeadline<T>(
  clock: Clock,
  ms: number,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const deadline = new Deadline(clock, ms);
  try {
    return await deadline.race(call(controller.signal));
  } catch (error) {
    if (error === TIME_IS_UP) controller.abort(new Error(`no answer after ${ms} ms`));
    throw error;
  } finally {
    deadline.cancel();
  }
}

/** One time limit for several steps. */
export class Deadline {
  readonly #clock: Clock;
  readonly #end: number;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#end = clock.monotonic() + ms;
  }

  /** Rejects with {@link TIME_IS_UP} if the step takes too long. The step itself goes on, and its outcome is unknown. */
  race<T>(step: Promise<T>): Promise<T> {
    this.cancel();
    return new Promise((resolve, reject) => {
      this.#cancel = this.#clock.after(this.#end - this.#clock.monotonic(), () => reject(TIME_IS_UP));
      step.then(resolve, reject);
    });
  }

  /** The rest of the limit, in milliseconds. */
  get remainingMs(): number {
    return Math.max(0, this.#end - this.#clock.monotonic());
  }

  cancel(): void {
    this.#cancel?.();
  }
}
