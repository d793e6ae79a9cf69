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
  readonly deliveriesFor: (variant: Variant) => readonly SignedDelivery[];
  /** Rounds go on until this time is over, whatever they show. */
  readonly budgetMs: number;
  readonly connections: number;
  /** Before each variant's turn. */
  readonly prepare?: (variant: Variant) => Promise<void>;
}

/** Requests of each turn that are not measured: they open the connections. */
export const PRIMERS = 128;
/** Requests of each variant before the first round that is measured: the engine compiles what is hot. */
const WARM_UP = 3_000;
/** Fewer give no 95 % interval. */
const ROUNDS_MIN = 6;

/** Samples by variant, in the order of the plan; the n-th ones of two variants are of the same round. */
export async function measureRounds(server: ServerProcess, plan: Plan): Promise<readonly Sample[][]> {
  const samples: Sample[][] = plan.variants.map(() => []);
  const count = plan.variants.length;
  const [first] = plan.variants;
  const warmUp = first === undefined ? 0 : Math.ceil(WARM_UP / plan.deliveriesFor(first).length);
  const end = performance.now() + plan.budgetMs;
  for (let round = 0; round < warmUp + ROUNDS_MIN || performance.now() < end; round++) {
    for (let turn = 0; turn < count; turn++) {
      const index = (turn + round) % count;
      const variant = plan.variants[index];
      if (variant === undefined) continue;
      const sample = await measureTurn(server, variant, plan);
      if (round >= warmUp) samples[index]?.push(sample);
    }
  }
  return samples;
}

async function measureTurn(server: ServerProcess, variant: Variant, plan: Plan): Promise<Sample> {
  await plan.prepare?.(variant);
  const deliveries = plan.deliveriesFor(variant);
  const [primers, measured] = [deliveries.slice(0, PRIMERS), deliveries.slice(PRIMERS)];
  const handled = handles(variant) ? deliveries.length : 0;
  const sender = senderTo(await server.tell({ do: "open", variant }), plan.connections);
  try {
    await sender.send(primers);
    const before = await server.tell({ do: "read", handled: Math.min(handled, PRIMERS) });
    const ms = await sender.send(measured);
    const after = await server.tell({ do: "read", handled });
    return {
      cpuUs: (after.cpuUs - before.cpuUs) / measured.length,
      perSecond: (measured.length / ms) * 1_000,
    };
  } finally {
    await sender.close();
  }
}

/** Whether a handler runs in the server: its work is part of the cost then. */
function handles({ mode }: Variant): boolean {
  return mode !== "bare" && !mode.endsWith("-accept");
}

/** How many times as much processor time one takes as the other, round by round. */
export function pairedRatios(one: readonly Sample[], other: readonly Sample[]): readonly number[] {
  return one.map((sample, round) => sample.cpuUs / (other[round]?.cpuUs ?? Number.NaN));
}
