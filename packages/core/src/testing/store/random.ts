/** Randomness that can be had again. */

/** Numbers in [0, 1), the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A seed, printed, or the one that `PAYHOOKS_SEED` names. */
export function newSeed(test: string): number {
  const given = Number(process.env.PAYHOOKS_SEED);
  const seed = Number.isInteger(given) && given > 0 ? given : Math.floor(Math.random() * 2 ** 31);
  console.log(`${test}: seed ${seed} (PAYHOOKS_SEED=${seed} repeats it)`);
  return seed;
}
