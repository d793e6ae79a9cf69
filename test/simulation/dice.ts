/**
 * Randomness without a state: a number depends only on the seed and on its purpose. So if one fault or one event is taken away
 * from a history, all other numbers stay the same.
 */
export class Dice {
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = mix(seed | 0);
  }

  /** At least 0, below 1. */
  roll(purpose: string, one = 0, two = 0): number {
    let hash = this.#seed;
    for (let at = 0; at < purpose.length; at++) hash = Math.imul(hash ^ purpose.charCodeAt(at), 16_777_619);
    hash = mix(Math.imul(hash, 31) + one);
    hash = mix(Math.imul(hash, 31) + two);
    return (hash >>> 0) / 2 ** 32;
  }

  chance(probability: number, purpose: string, one = 0, two = 0): boolean {
    return this.roll(purpose, one, two) < probability;
  }

  between(min: number, max: number, purpose: string, one = 0, two = 0): number {
    return min + this.roll(purpose, one, two) * (max - min);
  }

  /** A whole number, both ends included. */
  whole(min: number, max: number, purpose: string, one = 0, two = 0): number {
    return min + Math.floor(this.roll(purpose, one, two) * (max - min + 1));
  }

  pick<T>(list: readonly [T, ...T[]], purpose: string, one = 0, two = 0): T {
    return list[Math.floor(this.roll(purpose, one, two) * list.length)] ?? list[0];
  }
}

function mix(value: number): number {
  let hash = value ^ (value >>> 16);
  hash = Math.imul(hash, 0x7feb352d);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x846ca68b);
  return hash ^ (hash >>> 16);
}
