/** The comparisons of one framework and one signature each, and what they come to. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { COST_GOALS, type CostGoal, goalsOf } from "./goals.ts";
import type { FrameworkName, Mode, Scheme } from "./protocol.ts";
import type { GoalFigures, GroupFigures } from "./results.ts";
import { measureRounds, pairedRatios, type Sample } from "./rounds.ts";
import type { ServerProcess } from "./server.ts";
import { type Estimate, estimate, verdictOf } from "./statistics.ts";

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

/** The measurements that the goals need. */
export const QUICK_GROUPS: readonly Group[] = [
  compared("express", "rsa"),
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
/** A request of Next.js takes ten times as long as any other's. */
const NEXT_SHORTER = 4;

export interface GroupRun {
  readonly start: () => Promise<ServerProcess>;
  readonly group: Group;
  readonly deliveries: readonly SignedDelivery[];
  readonly turnLength: number;
  readonly budgetMs: number;
}

/** Two modes, round by round. */
interface Pair {
  readonly reference: readonly Sample[];
  readonly mode: readonly Sample[];
}

/**
 * Compares each mode with the group's reference, each pair in a process of its own: whatever else runs in it takes part in
 * what the engine compiles and collects, and none of that is the cost of these two.
 */
export async function measureGroup({
  start,
  group,
  deliveries,
  turnLength,
  budgetMs,
}: GroupRun): Promise<{ readonly figures: GroupFigures; readonly goals: readonly GoalFigures[] }> {
  const { framework, scheme, reference, modes } = group;
  const turn = framework === "next" ? Math.ceil(turnLength / NEXT_SHORTER) : turnLength;
  const pairs = new Map<Mode, Pair>();
  let node = "";
  for (const mode of modes) {
    if (mode === reference) continue;
    const server = await start();
    node = server.node;
    const [one = [], other = []] = await measureRounds(server, {
      variants: [reference, mode].map((each) => ({ framework, scheme, mode: each })),
      deliveriesFor: (_variant, round) => deliveries.slice(round * turn, (round + 1) * turn),
      budgetMs: budgetMs / (modes.length - 1),
      connections: CONNECTIONS,
      awake: !mode.startsWith("redis"),
    });
    await server.end();
    pairs.set(mode, { reference: one, mode: other });
  }
  const samplesOf = (mode: Mode): readonly Sample[] =>
    pairs.get(mode)?.mode ?? [...pairs.values()].flatMap((pair) => pair.reference);
  const ratioTo = (mode: Mode): Estimate => {
    const { reference: one = [], mode: other = [] } = pairs.get(mode) ?? {};
    return estimate(pairedRatios(one, other));
  };
  const figures: GroupFigures = {
    framework,
    scheme,
    reference,
    modes: modes.map((mode) => ({
      mode,
      cpuUs: estimate(samplesOf(mode).map(({ cpuUs }) => cpuUs)),
      perSecond: estimate(samplesOf(mode).map(({ perSecond }) => perSecond)),
      ratio: ratioTo(mode),
    })),
  };
  const mine = (goal: CostGoal): boolean =>
    goal.framework === framework &&
    goal.scheme === scheme &&
    modes.includes(goal.ours) &&
    goal.against === reference;
  const goals = COST_GOALS.filter(mine).map((goal) => goalFigures(goal, ratioTo, node));
  return { figures, goals };
}

function goalFigures(
  { what, ours: mode, acceptingAlone, bound, atLeast }: CostGoal,
  ratioTo: (mode: Mode) => Estimate,
  node: string,
): GoalFigures {
  const goal = atLeast[goalsOf(node)];
  const figure = ratioTo(mode);
  return {
    what,
    goal: `≥ ${goal}`,
    figure,
    acceptingAlone: acceptingAlone && ratioTo(acceptingAlone),
    least: bound && ratioTo(bound),
    verdict: verdictOf(figure, goal),
  };
}
