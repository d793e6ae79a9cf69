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
  {
    seed: 107_465,
    what: "an end that was written warned of a double, since its answer got lost and another process had gone on by then",
  },
  {
    seed: 108_288,
    what: "a write that began a run also made a person's replay, which took the lease away, and the run was started",
  },
  {
    seed: 1_642_328,
    what: "a lease that was dated by an old idea of the store's time ended while its process slept, and it called a handler",
  },
  {
    seed: 1_742_436,
    what: "the same, of a lease whose run waited for a place as the process fell asleep",
  },
  {
    seed: 1_784_468,
    what: "the same, of a process that stood still once more before it heard that its lease was written",
  },
  {
    seed: 1_012_261,
    what: "a PENDING whose lease lapsed as the SUCCESS was begun by its copy ran after it",
  },
  {
    seed: 1_003_347,
    what: "a wall clock that was set back during an attempt before its time put the next attempt off by as much",
  },
  {
    seed: 1_183_156,
    what: "a cron job that was just being given an event went on with a store that had been closed meanwhile",
  },
  {
    seed: 1_180_975,
    what: "processes of the older version were first at every look, so that the newer one never got a record only it can read",
  },
  {
    seed: 1_443_773,
    what: "a handler died running, a process without it held the event for another handler's sake, and its replay told nobody",
  },
  {
    seed: 2_597_477,
    what: "a run that waited long for its place was not renewed before its lease ended, and its handler ran twice",
  },
  {
    seed: 2_314_946,
    what: "writes that were still repeated when the grace of a close was over went to the closed store",
  },
];
