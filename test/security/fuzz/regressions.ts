/** Attempts that once were answered wrongly, or found a fault of the fuzzer itself. Each is made again in every run. */
export const REGRESSIONS: readonly {
  readonly seed: number;
  readonly number: number;
  readonly why: string;
}[] = [
  { seed: 1, number: 0, why: "the first attempt of the first seed, so that this list is never untried" },
];
