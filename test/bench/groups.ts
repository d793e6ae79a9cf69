/** The comparisons of one framework and one signature each, and what they come to. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { COST_GOALS, type CostGoal, goalsOf } from "./goals.ts";
import type { FrameworkName, Mode, Scheme } from "./protocol.ts";
import type { GoalFigures, GroupFigures } from "./results.ts";
import { measureRounds, pairedRatios, type Sample } from "./rounds.ts";
import type { ServerProcess } from "./server.ts";
import { estimate, verdictOf } from "./statistics.ts";

export interface Group {
  readonly framework: FrameworkName;
  readonly scheme: Scheme;
  readonly reference: Mode;
  readonly modes: readonly Mode[];
}

const byHand: readonly Mode[] = ["bare", "inline"];
const ours: readonly Mode[] = ["memory", "memory-accept"];
const compared = (framework: FrameworkName, scheme: Scheme): Group => ({
  framework,
  scheme,
  reference: "inline",
  modes: [...byHand, "least", ...ours],
});

/** What the goals need. */
export const QUICK_GROUPS: readonly Group[] = [
  compared("express", "rsa"),
  // Apart: whoever shares the process with it pays for the collection of its keys, one for each request.
  { framework: "express", scheme: "rsa", reference: "pem", modes: ["pem", ...ours] },
  compared("express", "hmac"),
  compared("fastify", "rsa"),
  compared("fastify", "hmac"),
  compared("hono", "rsa"),
  {
    framework: "express",
    scheme: "rsa",
    reference: "memory-accept",
    modes: ["memory-accept", "redis-accept"],
  },
];

export const GROUPS: readonly Group[] = [
  ...QUICK_GROUPS.slice(0, -1),
  compared("hono", "hmac"),
  compared("next", "rsa"),
  compared("next", "hmac"),
  compared("fetch", "rsa"),
  compared("fetch", "hmac"),
  {
    framework: "express",
    scheme: "rsa",
    reference: "memory-accept",
    modes: ["memory-accept", "sqlite-accept", "redis-accept", "memory", "sqlite", "redis"],
  },
];

/** As many as the goal for Redis names. */
const CONNECTIONS = 64;

export interface GroupRun {
  readonly server: ServerProcess;
  readonly group: Group;
  readonly deliveries: readonly SignedDelivery[];
  readonly turnLength: number;
  readonly budgetMs: number;
}

export async function measureGroup({
  server,
  group,
  deliveries,
  turnLength,
  budgetMs,
}: GroupRun): Promise<{ readonly figures: GroupFigures; readonly goals: readonly GoalFigures[] }> {
  const { framework, scheme, reference, modes } = group;
  const samples = await measureRounds(server, {
    variants: modes.map((mode) => ({ framework, scheme, mode })),
    deliveriesFor: (_variant, round) => deliveries.slice(round * turnLength, (round + 1) * turnLength),
    budgetMs,
    connections: CONNECTIONS,
    awake: !modes.some((mode) => mode.startsWith("redis")),
  });
  const of = (mode: Mode): readonly Sample[] => samples[modes.indexOf(mode)] ?? [];
  const figures: GroupFigures = {
    framework,
    scheme,
    reference,
    modes: modes.map((mode) => ({
      mode,
      cpuUs: estimate(of(mode).map(({ cpuUs }) => cpuUs)),
      perSecond: estimate(of(mode).map(({ perSecond }) => perSecond)),
      ratio: estimate(pairedRatios(of(reference), of(mode))),
    })),
  };
  const mine = (goal: CostGoal): boolean =>
    goal.framework === framework &&
    goal.scheme === scheme &&
    modes.includes(goal.ours) &&
    modes.includes(goal.against) &&
    // A group that compares inboxes has the same modes as others; only its own reference counts.
    goal.against === reference;
  const goals = COST_GOALS.filter(mine).map((goal) => goalFigures(goal, of, server.node));
  return { figures, goals };
}

function goalFigures(
  { what, ours: mode, against, acceptingAlone, bound, atLeast }: CostGoal,
  of: (mode: Mode) => readonly Sample[],
  node: string,
): GoalFigures {
  const goal = atLeast[goalsOf(node)];
  const figure = estimate(pairedRatios(of(against), of(mode)));
  const alone = acceptingAlone && estimate(pairedRatios(of(acceptingAlone[1]), of(acceptingAlone[0])));
  const least = bound && estimate(pairedRatios(of(against), of(bound)));
  return { what, goal: `≥ ${goal}`, figure, acceptingAlone: alone, least, verdict: verdictOf(figure, goal) };
}
