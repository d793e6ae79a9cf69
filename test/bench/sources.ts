/**
 * `npm run bench -- --sources`: ready sources on Express beside their senders' own libraries, and beside the connect flow. All three
 * are in one server process and take turns, from the request until the handler has ended. `--quick` shows that it works.
 */
import { loadavg } from "node:os";
import { createTestKeys, type SignedDelivery } from "@payhooks/core/testing";
import { signedDeliveries } from "./deliveries.ts";
import { installPeers, PEER_VERSIONS } from "./install.ts";
import { peerDeliveries } from "./peers/payloads.ts";
import type { PeerName, Variant } from "./protocol.ts";
import { writeReport } from "./report.ts";
import { measureRounds, pairedRatios, type Sample, WARM_UP_ROUNDS } from "./rounds.ts";
import { buildPrograms, startServer } from "./server.ts";
import { type SourceFigures, type SourcesResults, sourcesTable, writeSources } from "./sources-results.ts";
import { estimate } from "./statistics.ts";

const isQuick = process.argv.includes("--quick");
const TURN = isQuick ? 300 : 2_000;
const ROUNDS = WARM_UP_ROUNDS + (isQuick ? 6 : 24);
const BUDGET_MS = isQuick ? 10_000 : 60_000;
const PACKAGES: Partial<Record<PeerName, string>> = {
  stripe: "stripe",
  standardwebhooks: "standardwebhooks",
  octokit: "@octokit/webhooks",
};

const keys = { ...createTestKeys(), secret: "whsec_bench_0123456789abcdef" };
const surroundings = {
  publicKey: keys.publicKey,
  secret: keys.secret,
  redisUrl: null,
  nextApp: null,
  peers: await installPeers(),
};
const programs = await buildPrograms();
const pool = await signedDeliveries("hmac", ROUNDS * TURN, keys);
let node = "";

async function compare(peer: PeerName, name: string): Promise<SourceFigures> {
  const server = await startServer(programs.server, surroundings);
  node = server.node;
  const on = { framework: "express", scheme: "hmac" } as const;
  const variants: readonly Variant[] = [
    { ...on, mode: "peer", peer },
    { ...on, mode: "source", peer },
    { ...on, mode: "memory" },
  ];
  const [library = [], source = [], connect = []] = await measureRounds(server, {
    variants,
    // Signed when it is their turn: the senders' libraries refuse what is older than five minutes.
    deliveriesFor: ({ mode }, round): readonly SignedDelivery[] => {
      if (round >= ROUNDS) return [];
      if (mode === "memory") return pool.slice(round * TURN, (round + 1) * TURN);
      return peerDeliveries(peer, TURN, keys.secret);
    },
    budgetMs: BUDGET_MS,
    connections: 64,
    awake: true,
  });
  await server.end();
  const costOf = (samples: readonly Sample[]) => estimate(samples.map(({ cpuUs }) => cpuUs));
  return {
    peer,
    library: `${name} ${PEER_VERSIONS[name]}`,
    libraryUs: costOf(library),
    sourceUs: costOf(source),
    connectUs: costOf(connect),
    libraryRatio: estimate(pairedRatios(library, source)),
    connectRatio: estimate(pairedRatios(connect, source)),
  };
}

const sources: SourceFigures[] = [];
for (const [peer, name] of Object.entries(PACKAGES)) sources.push(await compare(peer as PeerName, name));
const load = loadavg()[0] ?? Number.NaN;
const results: SourcesResults = { node, load, measuredOn: new Date().toISOString().slice(0, 10), sources };
console.log(`Node ${node}, load ${load.toFixed(1)}\n\n${sourcesTable(results)}`);
if (!isQuick) {
  writeSources(results);
  writeReport();
}
