/** Randomness that can be repeated. */

/** Random numbers in [0, 1). The same seed always gives the same ones. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A new seed, or the one that `PAYHOOKS_SEED` names. It is printed. */
export function newSeed(test: string): number {
  const givenSeed = Number(process.env.PAYHOOKS_SEED);
  const seed = Number.isInteger(givenSeed) && givenSeed > 0 ? givenSeed : Math.floor(Math.random() * 2 ** 31);
  console.log(`${test}: seed ${seed} (PAYHOOKS_SEED=${seed} repeats it)`);
  return seed;
}
