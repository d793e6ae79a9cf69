/** How many records are remembered that cannot be read. */
const MAX_BROKEN_RECORDS = 10_000;

/**
 * Records that could not be read at the end of a run, or on which a change failed then. This process begins their
 * events again only if a poll has found the record unreadable, and a later poll can read it: then it was repaired. If
 * there are too many records, the oldest are forgotten.
 */
export class BrokenRecords {
  /** The latest last. */
  readonly #keys = new Set<string>();

  add(key: string): void {
    this.#keys.add(key);
    for (const oldest of this.#keys) {
      if (this.#keys.size <= MAX_BROKEN_RECORDS) break;
      this.#keys.delete(oldest);
    }
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  delete(key: string): void {
    this.#keys.delete(key);
  }
}
