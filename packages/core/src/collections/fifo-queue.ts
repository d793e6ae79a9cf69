/** How many emptied places are removed at a time. */
const MIN_FREED_SLOTS = 1_000;

/** A queue: first in, first out. */
export class FifoQueue<T> {
  readonly #entries: (T | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#entries.length - this.#head;
  }

  push(entry: T): void {
    this.#entries.push(entry);
  }

  /** The first entry, which stays in the queue. */
  peek(): T | undefined {
    return this.#entries[this.#head];
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const entry = this.#entries[this.#head];
    this.#entries[this.#head++] = undefined;
    // Emptied places are removed many at a time, once they are half of all. On average an entry moves once at most.
    if (this.#head >= MIN_FREED_SLOTS && this.#head * 2 >= this.#entries.length) {
      this.#entries.splice(0, this.#head);
      this.#head = 0;
    }
    return entry;
  }
}
