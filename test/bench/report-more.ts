/** The sections of the report that only `--all` has. */
import { PEER_VERSIONS } from "./install.ts";
import type { PeerName } from "./protocol.ts";
import type { MoreResults, PeerFigures } from "./results.ts";
import { figureOf, intervalOf, MODES, table } from "./table.ts";

const PEERS: Readonly<Record<PeerName, string>> = {
  octokit: "@octokit/webhooks",
  bolt: "@slack/bolt",
  stripe: "stripe",
  standardwebhooks: "standardwebhooks",
  svix: "svix",
};
const ON = { node: "node:http", express: "Express 5" } as const;

const count = (value: number): string => Math.round(value).toLocaleString("en");

export function moreSections(results: MoreResults): readonly string[] {
  const {
    peers = [],
    latency = [],
    bursts = [],
    throughput = [],
    scaling = [],
    entries = [],
    start,
  } = results;
  const sections = [
    peers.length > 0 && peerTable(peers),
    latency.length > 0 &&
      table(
        ["acknowledged after, 64 in flight, handlers take 300 ms", "p50", "p99", "p99.9"],
        latency.map(({ mode, p50, p99, p999 }) => [MODES[mode], ...[p50, p99, p999].map(ms)]),
      ),
    bursts.length > 0 &&
      table(
        ["deliveries at once", "number", "all answered after", "the event loop was away for at most"],
        bursts.map(({ mode, deliveries, ms: all, lagMs }) => [
          MODES[mode],
          count(deliveries),
          ms(all),
          ms(lagMs),
        ]),
      ),
    throughput.length > 0 &&
      table(
        [
          "from request to finished record, Redis",
          "events per second",
          "µs per event",
          "of Redis, µs per event",
        ],
        throughput.map(({ processes, perSecond, cpuUs, redisCpuUs }) => [
          processes === 1 ? "one process" : `${processes} processes`,
          count(perSecond),
          figureOf(cpuUs),
          figureOf(redisCpuUs),
        ]),
      ),
    scaling.length > 0 &&
      table(
        ["µs per request, with finished records", ...levelsOf(scaling).map(count)],
        [...new Set(scaling.map(({ mode }) => mode))].map((mode) => [
          MODES[mode],
          ...scaling.filter((one) => one.mode === mode).map(({ cpuUs }) => figureOf(cpuUs)),
        ]),
      ),
    entries.length > 0 &&
      table(
        ["entry point", "minified", "and gzipped", "import"],
        entries.map(({ entry, minifiedBytes, gzipBytes, importMs }) => [
          `\`${entry}\``,
          `${count(minifiedBytes)} bytes`,
          `${count(gzipBytes)} bytes`,
          ms(importMs),
        ]),
      ),
    start !== undefined &&
      table(
        ["from the start of a process until it listens", ""],
        [
          ["Express 5 alone", ms(start.bareMs)],
          ["with a receiver", ms(start.oursMs)],
        ],
      ),
  ];
  return sections.filter((section) => section !== false);
}

const ms = (value: number): string => `${figureOf(value)} ms`;

const levelsOf = (scaling: NonNullable<MoreResults["scaling"]>): readonly number[] => [
  ...new Set(scaling.map(({ records }) => records)),
];

function peerTable(peers: readonly PeerFigures[]): string {
  const rows = peers.map(
    ({ peer, framework, besideBare, oursBesideBare, ratio, acceptingAlone, verdict }) => [
      `\`${PEERS[peer]}\` ${PEER_VERSIONS[PEERS[peer]]}, ${ON[framework]}`,
      figureOf(besideBare.median),
      figureOf(oursBesideBare.median),
      `${figureOf(ratio.median)} (${intervalOf(ratio)})`,
      verdict === "met" ? "met" : `**${verdict}**`,
      `${figureOf(acceptingAlone.median)} (${intervalOf(acceptingAlone)})`,
    ],
  );
  return table(
    ["HMAC beside the bare framework", "it", "ours", "ours ÷ it, goal > 1", "verdict", "accepting only"],
    rows,
  );
}
