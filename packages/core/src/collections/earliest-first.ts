/** An entry of a heap. The heap stores the entry's position in it. */
export interface HeapEntry {
  /** Only the heap may use this. */
  position: number;
}

/** A binary heap whose entries know their positions, so that each of them can be removed at any time. */
export class EarliestFirst<T extends HeapEntry> {
  readonly #heap: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#heap.length;
  }

  peek(): T | undefined {
    return this.#heap[0];
  }

  /** All entries, in no particular order. Do not add or remove entries while you iterate. */
  values(): Iterable<T> {
    return this.#heap;
  }

  add(entry: T): void {
    this.#rise(this.#heap.length, entry);
  }

  /** Removes an entry, which must be in the heap. */
  remove(entry: T): void {
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    const { position } = entry;
    this.#rise(position, last);
    if (last.position === position) this.#sink(position, last);
  }

  /** Puts the entry at this position, or above it. */
  #rise(position: number, entry: T): void {
    let at = position;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || !this.#isBefore(entry, parent)) break;
      this.#put(at, parent);
      at = above;
    }
    this.#put(at, entry);
  }

  /** Puts the entry at this position, or below it. */
  #sink(position: number, entry: T): void {
    let at = position;
    for (;;) {
      let below = 2 * at + 1;
      let child = this.#heap[below];
      const other = this.#heap[below + 1];
      if (child !== undefined && other !== undefined && this.#isBefore(other, child)) {
        child = other;
        below++;
      }
      if (child === undefined || !this.#isBefore(child, entry)) break;
      this.#put(at, child);
      at = below;
    }
    this.#put(at, entry);
  }

  #put(position: number, entry: T): void {
    this.#heap[position] = entry;
    entry.position = position;
  }
}
