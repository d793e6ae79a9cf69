/** Free places of a line that go together. */
const FREED_AT_ONCE = 1_000;

/** A line: what came first goes first. */
export class FirstInFirstOut<T> {
  readonly #entries: (T | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#entries.length - this.#head;
  }

  push(entry: T): void {
    this.#entries.push(entry);
  }

  /** The first one, which stays. */
  peek(): T | undefined {
    return this.#entries[this.#head];
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const entry = this.#entries[this.#head];
    this.#entries[this.#head++] = undefined;
    // Places that are free go by many at a time, and when they are half of all: no entry is moved twice on average.
    if (this.#head >= FREED_AT_ONCE && this.#head * 2 >= this.#entries.length) {
      this.#entries.splice(0, this.#head);
      this.#head = 0;
    }
    return entry;
  }
}
