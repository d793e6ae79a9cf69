/** A median with what 95 % certainty leaves open. */
export interface Estimate {
  readonly median: number;
  /** The interval of the median that order statistics give: no assumption about the shape of the distribution. */
  readonly low: number;
  readonly high: number;
  readonly rounds: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted.length >> 1;
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  return sorted.length % 2 === 1 ? at(upper) : (at(upper - 1) + at(upper)) / 2;
}

/** The value below which this share of them lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/**
 * The median and its 95 % interval by the sign test: of n values, the k-th smallest and the k-th largest, k as large as
 * it can be while the chance that the true median lies outside stays at most 5 %. Fewer than six values leave all open.
 */
export function estimate(values: readonly number[]): Estimate {
  const sorted = [...values].sort((a, b) => a - b);
  const k = outerRank(sorted.length);
  return {
    median: median(sorted),
    low: k === 0 ? Number.NEGATIVE_INFINITY : (sorted[k - 1] ?? Number.NaN),
    high: k === 0 ? Number.POSITIVE_INFINITY : (sorted[sorted.length - k] ?? Number.NaN),
    rounds: sorted.length,
  };
}

/** The largest k with P(fewer than k of n fair coins show heads) ≤ 2.5 %. */
function outerRank(n: number): number {
  let term = 0.5 ** n;
  let below = 0;
  for (let k = 0; k < n; k++) {
    below += term;
    if (below > 0.025) return k;
    term *= (n - k) / (k + 1);
  }
  return 0;
}

export type Verdict = "met" | "missed" | "undecided";

/** Met or missed only when the whole interval says so. */
export function verdictOf({ low, high }: Pick<Estimate, "low" | "high">, goal: number): Verdict {
  if (low >= goal) return "met";
  return high < goal ? "missed" : "undecided";
}

/** The same of a goal that is not to be exceeded. */
export function verdictAtMost({ low, high }: Pick<Estimate, "low" | "high">, goal: number): Verdict {
  return verdictOf({ low: -high, high: -low }, -goal);
}
