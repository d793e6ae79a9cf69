/** The goals: the share that ours may cost of a receiver that is written by hand. */
import { estimate, verdictAtMost, verdictOf } from "../statistics.ts";
import type { Sample } from "./merchant-process.ts";
import type { RatioFigures } from "./results.ts";
import { NAMES, type Way } from "./ways.ts";

/** A bound of ours ÷ by hand. */
interface Goal {
  readonly ours: Way;
  readonly against: Way;
  readonly handlerMs: number;
  readonly measure: keyof Sample;
  readonly side: "at most" | "at least";
  readonly bound: number;
}

const atMost = (handlerMs: number, ours: Way, against: Way, measure: keyof Sample, bound: number): Goal => ({
  ours,
  against,
  handlerMs,
  measure,
  side: "at most",
  bound,
});

const GOALS: readonly Goal[] = [
  atMost(0, "redis", "queue", "cpuUs", 0.85),
  atMost(0, "redis", "queue", "serverCpuUs", 0.35),
  { ...atMost(0, "redis", "queue", "perSecond", 1.3), side: "at least" },
  atMost(50, "redis", "queue", "cpuUs", 0.9),
  atMost(50, "redis", "queue", "serverCpuUs", 0.5),
  ...(["graphile", "boss"] as const).flatMap((by) => [
    atMost(0, "postgres", by, "cpuUs", 0.6),
    atMost(0, "postgres", by, "serverCpuUs", 0.25),
    { ...atMost(0, "postgres", by, "perSecond", 3), side: "at least" } as const,
  ]),
  atMost(0, "memory", "check", "cpuUs", 1.1),
  atMost(0, "sqlite", "check", "cpuUs", 1.35),
  atMost(0, "redis", "check", "cpuUs", 1.15),
];

const MEASURES: Readonly<Record<keyof Sample, string>> = {
  cpuUs: "process",
  serverCpuUs: "server",
  perSecond: "events per second",
};

/** The samples of all ways in the order of their rounds. */
export type Samples = Readonly<Record<Way, readonly Sample[]>>;

/** Ratios are taken within a round, since a busy machine slows both sides. */
export function goalFigures(handlerMs: number, samples: Samples): readonly RatioFigures[] {
  return GOALS.filter((goal) => goal.handlerMs === handlerMs).map(
    ({ ours, against, measure, side, bound }) => {
      const others = samples[against];
      const figure = estimate(
        samples[ours].map((one, round) => one[measure] / (others[round]?.[measure] ?? Number.NaN)),
      );
      return {
        what: `${NAMES[ours]} ÷ ${NAMES[against]}: ${MEASURES[measure]}`,
        goal: `${side === "at most" ? "≤" : "≥"} ${bound}`,
        figure,
        verdict: side === "at most" ? verdictAtMost(figure, bound) : verdictOf(figure, bound),
      };
    },
  );
}
