/** Rounds: every variant in turn, so that all of them get the same of a machine that does other things too. */
import type { SignedDelivery } from "@payhooks/core/testing";
import { type Sender, senderTo } from "./load.ts";
import type { Variant } from "./protocol.ts";
import type { ServerProcess } from "./server.ts";

export interface Sample {
  readonly cpuUs: number;
  readonly perSecond: number;
  /** Microseconds of a request by place; null unless asked for. */
  readonly places: Readonly<Record<string, number>> | null;
}

export interface Plan {
  readonly variants: readonly Variant[];
  /** Requests that no turn of the variant has had before; none when there are no more. */
  readonly deliveriesFor: (variant: Variant, round: number) => readonly SignedDelivery[];
  /** Rounds go on until this time is over, whatever they show, or the deliveries are. */
  readonly budgetMs: number;
  readonly connections: number;
  /** The sender has a core of its own: it does not sleep while it sends. */
  readonly awake: boolean;
  /** Looks where the time goes, which makes every request dearer. */
  readonly profiled?: boolean;
}

/** Requests that open the connections, where there is one turn only. */
export const PRIMERS = 128;
/** Rounds that are not measured: the engine compiles what is hot, which takes some thousand requests of each variant. */
export const WARM_UP_ROUNDS = 6;
/** Fewer give no 95 % interval. */
const ROUNDS_MIN = 6;

/** A variant on its server, which lives as long as the measurement, as a merchant's does: with the code that the engine has compiled. */
interface Running {
  readonly variant: Variant;
  readonly id: number;
  readonly sender: Sender;
}

/** Samples by variant, in the order of the plan; the n-th ones of two variants are of the same round. */
export async function measureRounds(server: ServerProcess, plan: Plan): Promise<readonly Sample[][]> {
  const running: Running[] = [];
  for (const variant of plan.variants) {
    const { id, ...target } = await server.tell({ do: "open", variant, beside: running.length > 0 });
    running.push({ variant, id, sender: senderTo(target, plan.connections, plan.awake) });
  }
  const samples: Sample[][] = running.map(() => []);
  const end = performance.now() + plan.budgetMs;
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS_MIN || performance.now() < end; round++) {
    const turns = plan.variants.map((variant) => plan.deliveriesFor(variant, round));
    if (turns.some((deliveries) => deliveries.length === 0)) break;
    for (const index of orderOf(round, running.length)) {
      const [one, deliveries] = [running[index], turns[index]];
      if (one === undefined || deliveries === undefined) continue;
      const sample = await measureTurn(server, one, deliveries, plan.profiled === true);
      if (round >= WARM_UP_ROUNDS) samples[index]?.push(sample);
    }
  }
  for (const { sender } of running) await sender.close();
  return samples;
}

/** The order of a round: another one begins every two rounds, and every other round goes the other way round. */
export function orderOf(round: number, count: number): readonly number[] {
  const order = Array.from({ length: count }, (_, turn) => (turn + (round >> 1)) % count);
  return round % 2 === 0 ? order : order.reverse();
}

async function measureTurn(
  server: ServerProcess,
  { variant, id, sender }: Running,
  deliveries: readonly SignedDelivery[],
  profiled: boolean,
): Promise<Sample> {
  const before = await server.tell({ do: "read", handled: 0, of: id });
  if (profiled) await server.tell({ do: "profile" });
  const ms = await sender.send(deliveries);
  const handled = handles(variant) ? before.handled + deliveries.length : 0;
  const after = await server.tell({ do: "read", handled, of: id });
  const profile = profiled ? await server.tell({ do: "profiled" }) : null;
  // Events that nobody else works off would fill the memory, and be paid for by the collector.
  if (variant.mode === "memory-accept") await server.tell({ do: "work-off", of: id });
  return {
    cpuUs: (after.cpuUs - before.cpuUs) / deliveries.length,
    perSecond: (deliveries.length / ms) * 1_000,
    places: profile && perRequest(profile, deliveries.length),
  };
}

function perRequest(profile: Readonly<Record<string, number>>, requests: number): Record<string, number> {
  return Object.fromEntries(Object.entries(profile).map(([place, us]) => [place, us / requests]));
}

/** True if a handler runs in the server: its work is part of the cost then. */
function handles({ mode }: Variant): boolean {
  return mode !== "bare" && !mode.endsWith("-accept");
}

/** How many times as much processor time one takes as the other, round by round. */
export function pairedRatios(
  one: readonly Pick<Sample, "cpuUs">[],
  other: readonly Pick<Sample, "cpuUs">[],
): readonly number[] {
  return one.map((sample, round) => sample.cpuUs / (other[round]?.cpuUs ?? Number.NaN));
}

/** How many times as many of one are done in a second as of the other, round by round. */
export function pairedRates(
  one: readonly Pick<Sample, "perSecond">[],
  other: readonly Pick<Sample, "perSecond">[],
): readonly number[] {
  return one.map((sample, round) => sample.perSecond / (other[round]?.perSecond ?? Number.NaN));
}
