/** Below this length it is not worth looking for what two texts have in common. */
const MIN_SHARED = 200;

/**
 * How many characters two texts have in common at their starts and at their ends: the server has them already. None
 * where a character may take several bytes, since it counts in bytes.
 */
export function commonEnds(before: string, after: string): readonly [first: number, last: number] {
  const shorter = Math.min(before.length, after.length);
  if (shorter < MIN_SHARED || Buffer.byteLength(after) !== after.length) return [0, 0];
  if (Buffer.byteLength(before) !== before.length) return [0, 0];
  const first = longest(shorter, (length) => before.slice(0, length) === after.slice(0, length));
  const [end, newEnd] = [before.length, after.length];
  const last = longest(
    shorter - first,
    (length) => before.slice(end - length) === after.slice(newEnd - length),
  );
  return [first, last];
}

/** The greatest length up to `most` that is in common, where all shorter ones are. */
function longest(most: number, isCommon: (length: number) => boolean): number {
  let [low, high] = [0, most];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (isCommon(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
