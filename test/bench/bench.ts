/**
 * `npm run bench`: what Payhooks costs on top of a framework and the signature check, held against the goals of
 * goals.ts. `--quick` measures less and writes nothing, `--all` measures more, and on Node 24 too. `--node 24` runs the
 * server on that version alone. `--by-hand`, `--abuse`, `--redis`, `--sqlite`, `--effects`, `--backlog`, `--merchants`, `--burst`, `--search`, `--otel`, `--seal`, `--sources` and `--soak` are
 * benches of their own.
 */
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createTestKeys } from "@payhooks/core/testing";
import { hasRedis } from "../../scripts/redis-server.mjs";
import { buildNext } from "../conformance/next.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { type Scope, withScope } from "../faults/harness/scope.ts";
import { root } from "../package/workspace.ts";
import { compareByHand } from "./by-hand/compare.ts";
import { GROUPS, type Group, measureGroup, QUICK_GROUPS } from "./comparison-groups.ts";
import { signedDeliveries } from "./deliveries.ts";
import { RECORD_BYTES_GOAL } from "./goals.ts";
import { installNode, installPeers } from "./install.ts";
import { measureMore } from "./more/measure.ts";
import { measureParts } from "./more/parts.ts";
import { measureProfile } from "./more/profile.ts";
import { recordBytes } from "./record-bytes.ts";
import { goalTable, groupTable, writeReport } from "./report.ts";
import { moreSections } from "./report-more.ts";
import { type GoalFigures, type GroupFigures, type Results, readResults, writeResults } from "./results.ts";
import { WARM_UP_ROUNDS } from "./rounds.ts";
import { buildPrograms, type Programs, type ServerProcess, startServer } from "./server.ts";
import { verdictAtMost } from "./statistics.ts";

const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    node: { type: "string" },
    "by-hand": { type: "boolean", default: false },
    abuse: { type: "boolean", default: false },
    redis: { type: "boolean", default: false },
    sqlite: { type: "boolean", default: false },
    effects: { type: "boolean", default: false },
    backlog: { type: "boolean", default: false },
    merchants: { type: "boolean", default: false },
    burst: { type: "boolean", default: false },
    search: { type: "boolean", default: false },
    otel: { type: "boolean", default: false },
    seal: { type: "boolean", default: false },
    sources: { type: "boolean", default: false },
    soak: { type: "boolean", default: false },
    postgres: { type: "boolean", default: false },
    events: { type: "string" },
    minutes: { type: "string" },
    rate: { type: "string" },
    seconds: { type: "string" },
    records: { type: "string" },
    folder: { type: "string" },
  },
});

/** Requests of one turn. */
const TURN = flags.quick ? 500 : 2_000;
/** Rounds that there are signed bodies for. */
const ROUNDS = WARM_UP_ROUNDS + (flags.quick ? 10 : 24);
/** For all groups together. The rest of the 15 minutes, or 2, is for signing and records. */
const BUDGET_MS = flags.quick ? 60_000 : 7 * 60_000;

if (flags["by-hand"]) await withScope((scope) => compareByHand(scope, flags.quick));
if (flags.abuse) {
  await import("./abuse-event-loop.ts");
  await import("./abuse.ts");
}
if (flags.redis) await import("./redis.ts");
if (flags.sqlite) await import("./sqlite.ts");
if (flags.effects) await import("./effects.ts");
if (flags.backlog) await import("./backlog.ts");
if (flags.merchants) await import("./merchants.ts");
if (flags.burst) await import("./burst.ts");
if (flags.search) await import("./search.ts");
if (flags.otel) await import("./otel.ts");
if (flags.seal) await import("./seal.ts");
if (flags.sources) await import("./sources.ts");
if (flags.soak) await import("./soak.ts");
const benchesOfTheirOwn = [
  flags["by-hand"],
  flags.abuse,
  flags.redis,
  flags.sqlite,
  flags.effects,
  flags.backlog,
  flags.merchants,
  flags.burst,
  flags.search,
  flags.otel,
  flags.seal,
  flags.sources,
  flags.soak,
];
if (!benchesOfTheirOwn.includes(true)) await withScope(main);

async function main(scope: Scope): Promise<void> {
  const redis = hasRedis() ? await RedisServer.start(scope, { aof: "everysec" }) : null;
  const programs = await buildPrograms();
  for (const execPath of await nodes()) await measureOn(execPath, programs, redis);
  if (!flags.quick) writeReport();
}

/** The versions of Node to run the server on. */
async function nodes(): Promise<readonly string[]> {
  if (flags.node !== undefined) return [await installNode(flags.node)];
  return flags.all ? [process.execPath, await installNode("24")] : [process.execPath];
}

async function measureOn(execPath: string, programs: Programs, redis: RedisServer | null): Promise<void> {
  const keys = { ...createTestKeys(), secret: "whsec_bench_0123456789abcdef" };
  const surroundings = {
    publicKey: keys.publicKey,
    secret: keys.secret,
    redisUrl: redis?.url ?? null,
    nextApp: flags.quick ? null : await builtNextApp(),
    peers: flags.all ? await installPeers() : null,
  };
  const start = (): Promise<ServerProcess> => startServer(programs.server, surroundings, execPath);
  const server = await start();
  console.log(`\nNode ${server.node}, ${availableParallelism()} cores`);
  const pools = {
    rsa: await signedDeliveries("rsa", ROUNDS * TURN, keys),
    hmac: await signedDeliveries("hmac", ROUNDS * TURN, keys),
  };
  // In a process that has nothing else to forget meanwhile.
  const counting = await start();
  const bytes = await recordBytes(counting, redis, pools.rsa);
  await counting.end();
  // The same deliveries come again, and are to be new.
  await redis?.tell("FLUSHALL");
  const groups = (flags.quick ? QUICK_GROUPS : GROUPS).map((group) => withoutRedis(group, redis === null));
  const modes = groups.reduce((sum, group) => sum + group.modes.length, 0);
  const found: GroupFigures[] = [];
  const goals: GoalFigures[] = [];
  for (const group of groups) {
    const measured = await measureGroup({
      start,
      group,
      deliveries: pools[group.scheme],
      turnLength: TURN,
      budgetMs: (BUDGET_MS * group.modes.length) / modes,
    });
    console.log(`\n${groupTable(measured.figures)}`);
    found.push(measured.figures);
    goals.push(...measured.goals);
  }
  goals.push(...bytesGoals(bytes));
  const parts = flags.quick ? {} : { parts: await measureParts(programs.parts, execPath) };
  const profile = flags.quick ? {} : { profile: await measureProfile(server, pools.hmac, TURN) };
  const more = flags.all
    ? await measureMore({
        server,
        start,
        execPath,
        redis,
        secret: keys.secret,
        rsa: pools.rsa,
        hmac: pools.hmac,
        turnLength: TURN,
      })
    : {};
  await server.end();
  console.log(`\n${goalTable(goals)}`);
  for (const section of moreSections(more)) console.log(`\n${section}`);
  if (flags.quick) return;
  const major = Number(server.node.split(".")[0]);
  const results: Results = {
    ...readResults(major),
    node: server.node,
    cores: availableParallelism(),
    load: loadavg()[1] ?? Number.NaN,
    measuredOn: new Date().toISOString().slice(0, 10),
    goals,
    groups: found,
    recordBytes: bytes,
    ...parts,
    ...profile,
    ...more,
  };
  writeResults(major, results);
}

function withoutRedis(group: Group, isMissing: boolean): Group {
  return isMissing ? { ...group, modes: group.modes.filter((mode) => !mode.startsWith("redis")) } : group;
}

/** The folder of the application whose routes the server process fills. */
async function builtNextApp(): Promise<string> {
  const folder = "test/bench/next-app";
  await buildNext(join(root, folder), [folder, "packages/core/dist", "packages/next/dist"]);
  return join(root, folder);
}

/** Counted, not timed: the same in every run. */
function bytesGoals(bytes: Results["recordBytes"]): readonly GoalFigures[] {
  return (["memory", "redis"] as const).flatMap((inbox) => {
    const median = bytes[inbox];
    if (median === undefined) return [];
    const figure = { median, low: median, high: median, rounds: 1 };
    const goal = `≤ ${RECORD_BYTES_GOAL}`;
    const verdict = verdictAtMost(figure, RECORD_BYTES_GOAL);
    return [
      {
        what: `bytes of a finished record: ${inbox}`,
        goal,
        figure,
        acceptingAlone: null,
        least: null,
        verdict,
      },
    ];
  });
}
