import { describe, expect, it } from "vitest";
import { estimate, median, percentile, verdictOf } from "./statistics.ts";

const upTo = (n: number): number[] => Array.from({ length: n }, (_, index) => index + 1);

describe("the median", () => {
  it("is the middle value, or the mean of the two", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});

describe("a percentile", () => {
  it("has that share below it", () => {
    expect(percentile(upTo(1_000), 0.99)).toBe(991);
    expect(percentile([5], 0.999)).toBe(5);
  });
});

describe("the 95 % interval of a median", () => {
  // Ranks from the published tables of the sign test: n, and the rank of its lower end.
  it.each([
    [6, 1],
    [8, 1],
    [9, 2],
    [10, 2],
    [15, 4],
    [20, 6],
    [25, 8],
    [50, 18],
  ])("of %i values goes from the %i-th smallest to the same from above", (n, rank) => {
    expect(estimate(upTo(n).reverse())).toEqual({
      median: (n + 1) / 2,
      low: rank,
      high: n + 1 - rank,
      rounds: n,
    });
  });

  it("leaves all open with fewer than six", () => {
    expect(estimate(upTo(5))).toMatchObject({ median: 3, low: -Infinity, high: Infinity });
  });

  it("holds the true median in about 95 of 100 samples", () => {
    let state = 7;
    const random = (): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
    let held = 0;
    for (let sample = 0; sample < 4_000; sample++) {
      // Skewed as times are: the true median of -log(1 - u) is log 2.
      const { low, high } = estimate(Array.from({ length: 20 }, () => -Math.log(1 - random())));
      if (low <= Math.LN2 && Math.LN2 <= high) held++;
    }
    expect(held / 4_000).toBeGreaterThan(0.94);
    expect(held / 4_000).toBeLessThan(0.98);
  });
});

describe("a verdict", () => {
  it.each([
    [0.97, 0.99, "met"],
    [0.96, 0.99, "met"],
    [0.9, 0.95, "missed"],
    [0.95, 0.97, "undecided"],
    [0.9, 0.96, "undecided"],
    [-Infinity, Infinity, "undecided"],
  ])("on [%f, %f] against 0.96 is %s", (low, high, verdict) => {
    expect(verdictOf({ low, high }, 0.96)).toBe(verdict);
  });
});
