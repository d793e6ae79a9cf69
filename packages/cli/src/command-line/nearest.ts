/** The candidate that a mistyped word most likely stands for, or null if none is close. */
export function findNearest(word: string, candidates: readonly string[]): string | null {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  if (best === undefined) return null;
  const begins = candidates.filter((candidate) => candidate.startsWith(word));
  if (word.length > 1 && begins.length === 1) return begins[0] ?? null;
  return best.distance <= Math.max(1, Math.floor(word.length / 3)) ? best.candidate : null;
}

/** How many insertions, deletions, replacements and swaps of neighbours turn one word into the other. */
function distanceOf(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const above = last[j] ?? 0;
      let least = Math.min(above + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (before[j - 2] ?? 0) + 1);
      }
      row.push(least);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
