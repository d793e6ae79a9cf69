/** Rounds: every variant in turn, so that all of them get the same of a machine that does other things too. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { senderTo } from "./load.ts";
import type { Variant } from "./protocol.ts";
import type { ServerProcess } from "./server.ts";

export interface Sample {
  readonly cpuUs: number;
  readonly perSecond: number;
}

export interface Plan {
  readonly variants: readonly Variant[];
  readonly deliveries: readonly SignedDelivery[];
  readonly rounds: number;
  readonly connections: number;
  /** Before each variant's turn. */
  readonly prepare?: (variant: Variant) => Promise<void>;
}

/** Requests of each turn that are not measured: they open the connections. */
export const PRIMERS = 256;
/** Rounds that are not measured: the engine compiles what is hot. */
const WARM_UP = 2;

/** Samples by variant, in the order of the plan; the n-th ones of two variants are of the same round. */
export async function measureRounds(server: ServerProcess, plan: Plan): Promise<readonly Sample[][]> {
  const samples: Sample[][] = plan.variants.map(() => []);
  const count = plan.variants.length;
  for (let round = -WARM_UP; round < plan.rounds; round++) {
    for (let turn = 0; turn < count; turn++) {
      const index = (turn + round + WARM_UP) % count;
      const variant = plan.variants[index];
      if (variant === undefined) continue;
      const sample = await measureTurn(server, variant, plan);
      if (round >= 0) samples[index]?.push(sample);
    }
  }
  return samples;
}

async function measureTurn(server: ServerProcess, variant: Variant, plan: Plan): Promise<Sample> {
  await plan.prepare?.(variant);
  const target = await server.tell({ do: "open", variant });
  const sender = senderTo(target, plan.connections);
  try {
    const [primers, measured] = [plan.deliveries.slice(0, PRIMERS), plan.deliveries.slice(PRIMERS)];
    const runs = variant.mode !== "bare" && !variant.mode.endsWith("-accept");
    await sender.send(primers);
    const before = await server.tell({ do: "read", handled: runs ? primers.length : 0 });
    const ms = await sender.send(measured);
    const after = await server.tell({ do: "read", handled: runs ? plan.deliveries.length : 0 });
    return {
      cpuUs: (after.cpuUs - before.cpuUs) / measured.length,
      perSecond: (measured.length / ms) * 1_000,
    };
  } finally {
    await sender.close();
  }
}

/** How many times as much one takes as the other, round by round. */
export function pairedRatios(one: readonly Sample[], other: readonly Sample[]): readonly number[] {
  return one.map((sample, round) => sample.cpuUs / (other[round]?.cpuUs ?? Number.NaN));
}
