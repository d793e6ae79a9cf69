/** An entry of a heap. The heap stores the entry's position in it. */
export interface HeapEntry {
  /** Only the heap may use this. */
  position: number;
}

/** A binary heap whose entries know their positions, so that each of them can be removed at any time. */
export class IndexedHeap<T extends HeapEntry> {
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
    let index = position;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || !this.#isBefore(entry, parent)) break;
      this.#put(index, parent);
      index = above;
    }
    this.#put(index, entry);
  }

  /** Puts the entry at this position, or below it. */
  #sink(position: number, entry: T): void {
    let index = position;
    for (;;) {
      let below = 2 * index + 1;
      let child = this.#heap[below];
      const sibling = this.#heap[below + 1];
      if (child !== undefined && sibling !== undefined && this.#isBefore(sibling, child)) {
        child = sibling;
        below++;
      }
      if (child === undefined || !this.#isBefore(child, entry)) break;
      this.#put(index, child);
      index = below;
    }
    this.#put(index, entry);
  }

  #put(position: number, entry: T): void {
    this.#heap[position] = entry;
    entry.position = position;
  }
}
