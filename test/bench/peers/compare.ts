/** Ours and the peers, each beside its own bare framework, with its own deliveries. */
import type { SignedDelivery } from "@payhooks/core/testing";
import type { PeerName } from "../protocol.ts";
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

/** Each peer beside ours, each of both beside its own bare framework, in a process of their own. */
export async function comparePeers(
  start: () => Promise<ServerProcess>,
  plan: PeerPlan,
): Promise<readonly PeerFigures[]> {
  const found: PeerFigures[] = [];
  for (const [peer, framework] of PEERS) {
    const server = await start();
    found.push(await comparePeer(server, peer, framework, plan));
    await server.end();
  }
  return found;
}

async function comparePeer(
  server: ServerProcess,
  peer: PeerName,
  framework: PeerFigures["framework"],
  { deliveries, turnLength, secret, budgetMs }: PeerPlan,
): Promise<PeerFigures> {
  const scheme = "hmac";
  const ours = { framework: OURS[framework], scheme } as const;
  const its = { framework, scheme, peer } as const;
  const [bareOfIt = [], it = [], bare = [], memory = [], accepting = []] = await measureRounds(server, {
    variants: [
      { ...its, mode: "bare" },
      { ...its, mode: "peer" },
      { ...ours, mode: "bare" },
      { ...ours, mode: "memory" },
      { ...ours, mode: "memory-accept" },
    ],
    deliveriesFor: ({ peer: its }, round) =>
      its === undefined
        ? deliveries.slice(round * turnLength, (round + 1) * turnLength)
        : peerDeliveries(its, turnLength, secret),
    budgetMs: budgetMs / PEERS.length,
    connections: 64,
    awake: true,
  });
  const itsBeside = beside(bareOfIt, it);
  const ratioTo = (mode: readonly Sample[]): number[] =>
    beside(bare, mode).map((value, round) => value / (itsBeside[round] ?? Number.NaN));
  const ratio = estimate(ratioTo(memory));
  return {
    peer,
    framework,
    cpuUs: estimate(it.map(({ cpuUs }) => cpuUs)),
    besideBare: estimate(itsBeside),
    oursBesideBare: estimate(beside(bare, memory)),
    ratio,
    acceptingAlone: estimate(ratioTo(accepting)),
    verdict: verdictOf(ratio, 1),
  };
}

/** The bare framework's processor time ÷ that of what stands on it, round by round. */
function beside(bare: readonly Sample[], one: readonly Sample[]): number[] {
  return bare.map(({ cpuUs }, round) => cpuUs / (one[round]?.cpuUs ?? Number.NaN));
}
