/** Seeds that once broke an invariant, and what was wrong. */
export const REGRESSIONS: readonly { readonly seed: number; readonly what: string }[] = [
  {
    seed: 159,
    what: "a process that stood still while it opened its store called a handler after its lease",
  },
  {
    seed: 182,
    what: "a handler that died running and was then removed could be replayed without a double-risk notice",
  },
];
