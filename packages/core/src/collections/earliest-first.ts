/** An entry of a heap. The heap stores the entry's position in it. */
export interface Placed {
  /** Only the heap may use this. */
  place: number;
}

/** A binary heap whose entries know their positions, so that each of them can be removed at any time. */
export class EarliestFirst<T extends Placed> {
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
    const { place } = entry;
    this.#rise(place, last);
    if (last.place === place) this.#sink(place, last);
  }

  /** Puts the entry at this position, or above it. */
  #rise(place: number, entry: T): void {
    let at = place;
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
  #sink(place: number, entry: T): void {
    let at = place;
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

  #put(place: number, entry: T): void {
    this.#heap[place] = entry;
    entry.place = place;
  }
}
