/** Holds a value until it is deleted. */
interface Cell<V> {
  value: V | null;
}

/**
 * Values that are under way, by key. Unlike a `Map` in V8, it lets go of values that were removed. When a `Map` outgrows its
 * table, the old table keeps its values and a reference to the new one. Once an old table is in the old generation, everything
 * that passes through the map stays in memory until a full collection. With events in it, that was most of the garbage
 * collector's work.
 */
export class InFlightMap<K, V extends object> {
  readonly #cells = new Map<K, Cell<V>>();

  get size(): number {
    return this.#cells.size;
  }

  get(key: K): V | undefined {
    return this.#cells.get(key)?.value ?? undefined;
  }

  has(key: K): boolean {
    return this.#cells.has(key);
  }

  set(key: K, value: V): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) this.#cells.set(key, { value });
    else cell.value = value;
  }

  delete(key: K): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) return;
    cell.value = null;
    this.#cells.delete(key);
  }

  /** The entries. Values may be set and deleted in the meantime. */
  *entries(): Generator<readonly [K, V]> {
    for (const [key, { value }] of this.#cells) if (value !== null) yield [key, value];
  }
}
