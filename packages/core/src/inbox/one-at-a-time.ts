/** How many records may queue here. Others wait in the store. */
const MAX_WAITING = 100;

/**
 * Lets events that may have killed their process run one at a time. These are events whose last attempt, and not their first, ended
 * with the death of its process. One of them may be the cause. If they ran together, it would kill the others too, attempt after
 * attempt, until all of them are held.
 */
export class OneAtATime {
  /** The record whose turn it is. */
  #key: string | null = null;
  readonly #waiting = new Map<string, () => void>();

  /** Takes the turn if it is free, or if this record has it already. */
  take(key: string): boolean {
    this.#key ??= key;
    return this.#key === key;
  }

  /** Queues for the turn. False if the record is queued already, or if the queue is full. */
  async wait(key: string): Promise<boolean> {
    if (this.take(key)) return true;
    if (this.#waiting.has(key) || this.#waiting.size >= MAX_WAITING) return false;
    await new Promise<void>((resolve) => this.#waiting.set(key, resolve));
    return true;
  }

  /** Passes the turn to the next record, if this record has it. */
  release(key: string): void {
    if (this.#key !== key) return;
    this.#key = null;
    for (const [next, go] of this.#waiting) {
      this.#waiting.delete(next);
      this.#key = next;
      go();
      return;
    }
  }
}
