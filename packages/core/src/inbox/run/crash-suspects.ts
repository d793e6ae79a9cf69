import type { Runner } from "../contract/inbox.ts";
import type { CrashSuspicion } from "../record/leased-run.ts";

/** How many records may queue here. Others wait in the store. */
const MAX_QUEUED_STARTS = 100;
/** How many suspects may run together after a death in their second attempt. Each further attempt halves the number. */
const FIRST_GROUP_SIZE = 8;

/** A record that waits until it may run. */
interface QueuedStart {
  readonly groupSize: number;
  readonly start: () => void;
}

/**
 * An event is a suspect if its process died during its last attempt, and this was not its first attempt. A suspect may
 * kill the process again, and so interrupt all other events that run there. So this class limits how many suspects run
 * together. The groups get smaller with every attempt: eight, four, two, one. If no event is to blame, as after a deploy
 * that killed the process twice, the suspects end nearly as soon as usual. An event with one attempt left runs alone,
 * so no event is held because of another one.
 */
export class CrashSuspects {
  /** For each suspect that runs: how many may run together, itself included. */
  readonly #running = new Map<string, number>();
  readonly #queue = new Map<string, QueuedStart>();

  /**
   * Counts the record as running, if it may run at once. False if it may not. `groupSize`: how many suspects may run
   * together with it, itself included.
   */
  tryJoin(key: string, groupSize: number): boolean {
    if (this.#running.has(key)) return true;
    if (this.#queue.size > 0 || !this.#mayJoin(groupSize)) return false;
    this.#running.set(key, groupSize);
    return true;
  }

  /** Waits until the record may run. False if the record waits already, or if too many records wait. */
  async wait(key: string, groupSize: number): Promise<boolean> {
    if (this.tryJoin(key, groupSize)) return true;
    if (this.#queue.has(key) || this.#queue.size >= MAX_QUEUED_STARTS) return false;
    await new Promise<void>((start) => this.#queue.set(key, { groupSize, start }));
    return true;
  }

  /** The record no longer runs. Waiting records may now run, in the order in which they came. */
  leave(key: string): void {
    if (!this.#running.delete(key)) return;
    for (const [next, { groupSize, start }] of this.#queue) {
      if (!this.#mayJoin(groupSize)) return;
      this.#queue.delete(next);
      this.#running.set(next, groupSize);
      start();
    }
  }

  #mayJoin(groupSize: number): boolean {
    return this.#running.size < Math.min(groupSize, ...this.#running.values());
  }
}

/** How many suspects may run together with an event that has these suspicions, itself included. */
export function groupSizeOf(
  suspicions: readonly CrashSuspicion[],
  { maxAttempts }: Pick<Runner, "maxAttempts">,
): number {
  return Math.min(
    ...suspicions.map(({ flow, event, handler, attempts }) => {
      const isLast = attempts + 1 >= (maxAttempts?.(flow, event, handler) ?? 0);
      return isLast ? 1 : Math.max(1, Math.floor(FIRST_GROUP_SIZE / 2 ** (attempts - 2)));
    }),
  );
}
