/** Ours and the peers, each beside its own bare framework, with its own deliveries. */
import type { SignedDelivery } from "@payhooks/core/testing";
import type { PeerName, Variant } from "../protocol.ts";
import type { PeerFigures } from "../results.ts";
import { measureRounds, type Sample } from "../rounds.ts";
import type { ServerProcess } from "../server.ts";
import { estimate, verdictOf } from "../statistics.ts";
import { peerDeliveries } from "./payloads.ts";

type On = "node" | "express";

const PEERS: readonly (readonly [PeerName, On])[] = [
  ["octokit", "node"],
  ["octokit", "express"],
  ["bolt", "node"],
  ["bolt", "express"],
  ["stripe", "express"],
  ["standardwebhooks", "express"],
  ["svix", "express"],
];

/** Ours on the framework of the peer; on node:http through fetch, beside the bare bridge. */
const OURS: Readonly<Record<On, "fetch" | "express">> = { node: "fetch", express: "express" };

export interface PeerPlan {
  readonly deliveries: readonly SignedDelivery[];
  readonly turnLength: number;
  readonly secret: string;
  readonly budgetMs: number;
}

export async function comparePeers(
  server: ServerProcess,
  { deliveries, turnLength, secret, budgetMs }: PeerPlan,
): Promise<readonly PeerFigures[]> {
  const scheme = "hmac";
  const variants: Variant[] = (["fetch", "express"] as const).flatMap((framework) =>
    (["bare", "memory", "memory-accept"] as const).map((mode) => ({ framework, scheme, mode })),
  );
  for (const [peer, framework] of PEERS) {
    variants.push({ framework, scheme, mode: "bare", peer }, { framework, scheme, mode: "peer", peer });
  }
  const samples = await measureRounds(server, {
    variants,
    deliveriesFor: ({ peer }, round) =>
      peer === undefined
        ? deliveries.slice(round * turnLength, (round + 1) * turnLength)
        : peerDeliveries(peer, turnLength, secret),
    budgetMs,
    connections: 64,
    awake: true,
  });
  const of = (framework: Variant["framework"], mode: Variant["mode"], peer?: PeerName): readonly Sample[] =>
    samples[variants.findIndex((v) => v.framework === framework && v.mode === mode && v.peer === peer)] ?? [];
  return PEERS.map(([peer, framework]) => {
    const own = OURS[framework];
    const its = beside(of(framework, "bare", peer), of(framework, "peer", peer));
    const ratioTo = (mode: "memory" | "memory-accept"): number[] =>
      beside(of(own, "bare"), of(own, mode)).map((value, round) => value / (its[round] ?? Number.NaN));
    const ratio = estimate(ratioTo("memory"));
    return {
      peer,
      framework,
      cpuUs: estimate(of(framework, "peer", peer).map(({ cpuUs }) => cpuUs)),
      besideBare: estimate(its),
      oursBesideBare: estimate(beside(of(own, "bare"), of(own, "memory"))),
      ratio,
      acceptingAlone: estimate(ratioTo("memory-accept")),
      verdict: verdictOf(ratio, 1),
    };
  });
}

/** The bare framework's processor time ÷ that of what stands on it, round by round. */
function beside(bare: readonly Sample[], one: readonly Sample[]): number[] {
  return bare.map(({ cpuUs }, round) => cpuUs / (one[round]?.cpuUs ?? Number.NaN));
}
