import type { Runner } from "../contract/inbox.ts";
import type { Suspicion } from "../record/leased-run.ts";

/** How many records may queue here. Others wait in the store. */
const MAX_WAITING = 100;
/** How many run together after the second death. Each further death halves that. */
const TOGETHER = 8;

/** A record that waits until it may run. */
interface Waiting {
  readonly width: number;
  readonly go: () => void;
}

/**
 * Events that may have killed their process are suspects: their last attempt, which was not their first, ended with the death of its
 * process. Any of them may kill the process again, and with it every event that runs beside it. This limits how many of them run together.
 *
 * So they run in groups that get smaller with every death: eight, four, two, one. Where no event is to blame, as after a deploy that
 * killed the process twice, they end nearly as soon as usual. An event with one attempt left runs alone, so no event is held because
 * of another one.
 */
export class Suspects {
  /** For each record that runs: how many may run together, itself included. */
  readonly #running = new Map<string, number>();
  readonly #waiting = new Map<string, Waiting>();

  /** Lets a record run at once if it may, or if it does already. `width`: how many may run together with it, itself included. */
  take(key: string, width: number): boolean {
    if (this.#running.has(key)) return true;
    if (this.#waiting.size > 0 || !this.#mayJoin(width)) return false;
    this.#running.set(key, width);
    return true;
  }

  /** Waits until the record may run. False if it waits already, or if too many do. */
  async wait(key: string, width: number): Promise<boolean> {
    if (this.take(key, width)) return true;
    if (this.#waiting.has(key) || this.#waiting.size >= MAX_WAITING) return false;
    await new Promise<void>((go) => this.#waiting.set(key, { width, go }));
    return true;
  }

  /** The record runs no more. Those that wait may now run, in the order in which they came. */
  ended(key: string): void {
    if (!this.#running.delete(key)) return;
    for (const [next, { width, go }] of this.#waiting) {
      if (!this.#mayJoin(width)) return;
      this.#waiting.delete(next);
      this.#running.set(next, width);
      go();
    }
  }

  #mayJoin(width: number): boolean {
    return this.#running.size < Math.min(width, ...this.#running.values());
  }
}

/** How many such events may run together with one that is suspected like this, itself included. */
export function widthOf(
  suspicions: readonly Suspicion[],
  { maxAttempts }: Pick<Runner, "maxAttempts">,
): number {
  return Math.min(
    ...suspicions.map(({ event, handler, attempts }) => {
      const isLast = attempts + 1 >= (maxAttempts?.(event, handler) ?? 0);
      return isLast ? 1 : Math.max(1, TOGETHER >> (attempts - 2));
    }),
  );
}
