/** Numbers that are the same for the same seed, on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer from 0 to 2^32 - 1. */
  next(): number {
    // A Weyl sequence through the finaliser of MurmurHash3.
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  }

  /** An integer from 0 to `end` - 1. */
  below(end: number): number {
    return this.next() % end;
  }

  /** True once in so many times. */
  oneIn(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }

  shuffled<T>(items: readonly T[]): T[] {
    const left = [...items];
    const shuffled: T[] = [];
    while (left.length > 0) shuffled.push(...left.splice(this.below(left.length), 1));
    return shuffled;
  }
}

/** A seed of its own for each run, or the one that `PAYHOOKS_SEED` names, to see a failure again. */
export function seedOfRun(): number {
  const asked = Number(process.env.PAYHOOKS_SEED);
  return Number.isInteger(asked) && asked > 0 ? asked : (Date.now() % 0x7fffffff) + 1;
}
