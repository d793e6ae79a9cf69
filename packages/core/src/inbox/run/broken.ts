/** How many records are remembered that cannot be read. */
const MAX_BROKEN = 10_000;

/**
 * Records that could not be read, or on which a change failed, at the end of a run; the latest last. They are not begun again in this
 * process, unless a poll finds one unreadable first: then it is begun once it can be read.
 */
export class Broken extends Set<string> {
  override add(key: string): this {
    super.add(key);
    for (const oldest of this) {
      if (this.size <= MAX_BROKEN) break;
      this.delete(oldest);
    }
    return this;
  }
}
