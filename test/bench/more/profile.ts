/** A profile of the cheapest framework, in which ours weighs the most. */
import type { SignedDelivery } from "@payhooks/core/testing";
import type { Mode } from "../protocol.ts";
import type { ProfileFigures } from "../results.ts";
import { measureRounds, type Sample } from "../rounds.ts";
import type { ServerProcess } from "../server.ts";

const MODES: readonly Mode[] = ["inline", "memory-accept", "memory"];
const BUDGET_MS = 60_000;

export async function measureProfile(
  server: ServerProcess,
  deliveries: readonly SignedDelivery[],
  turnLength: number,
): Promise<readonly ProfileFigures[]> {
  const samples = await measureRounds(server, {
    variants: MODES.map((mode) => ({ framework: "fastify", scheme: "hmac", mode })),
    deliveriesFor: (_variant, round) => deliveries.slice(round * turnLength, (round + 1) * turnLength),
    budgetMs: BUDGET_MS,
    connections: 64,
    awake: true,
    profiled: true,
  });
  return MODES.map((mode, index) => ({ mode, cpuUs: meanOf(samples[index] ?? []) }));
}

function meanOf(samples: readonly Sample[]): Record<string, number> {
  const mean: Record<string, number> = {};
  for (const { places } of samples) {
    for (const [place, us] of Object.entries(places ?? {}))
      mean[place] = (mean[place] ?? 0) + us / samples.length;
  }
  return mean;
}
