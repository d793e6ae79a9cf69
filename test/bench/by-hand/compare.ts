/**
 * `npm run bench -- --by-hand`: ours beside what is written by hand without it, end to end. Each way has a process of its
 * own, and those that need Redis or PostgreSQL a server of their own; all take their turn in every round.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createTestKeys, type SignedDelivery } from "@payhooks/core/testing";
import { startMariadb } from "../../effects/mariadb-server.ts";
import { PostgresServer } from "../../faults/harness/postgres-server.ts";
import { RedisServer } from "../../faults/harness/redis-server.ts";
import type { Scope } from "../../faults/harness/scope.ts";
import { signedDeliveries } from "../deliveries.ts";
import { writeReport } from "../report.ts";
import { orderOf } from "../rounds.ts";
import { buildPrograms } from "../server.ts";
import { estimate } from "../statistics.ts";
import { goalFigures, type Samples } from "./goals.ts";
import { type Database, type Merchant, type Sample, startMerchant } from "./merchant-process.ts";
import { handlerTables } from "./report.ts";
import { type ByHandResults, type HandlerFigures, writeByHand } from "./results.ts";
import { SERVER_OF, type ServerKind, WAYS, type Way } from "./ways.ts";

type Merchants = Readonly<Record<Way, Merchant>>;

/** Rounds with one kind of handler. */
interface Plan {
  readonly handlerMs: number;
  /** Events of one turn: enough for a second or two. */
  readonly events: number;
  /** Rounds that are not measured: the engine compiles what is hot, and connections are opened. */
  readonly warmUpRounds: number;
  /** Measured rounds, at most. All events together must fit into the memory inbox, which drops the oldest then. */
  readonly rounds: number;
  /** Measured rounds go on until this time is over, but there are enough of them for an interval. */
  readonly budgetMs: number;
}

/** Fewer give no 95 % interval. */
const ROUNDS_MIN = 6;

const PLANS: readonly Plan[] = [
  { handlerMs: 0, events: 2_000, warmUpRounds: 6, rounds: 30, budgetMs: 5 * 60_000 },
  { handlerMs: 50, events: 800, warmUpRounds: 1, rounds: 24, budgetMs: 6 * 60_000 },
];
const QUICK_PLANS: readonly Plan[] = [
  { handlerMs: 0, events: 500, warmUpRounds: 6, rounds: 10, budgetMs: 25_000 },
  { handlerMs: 50, events: 240, warmUpRounds: 1, rounds: 8, budgetMs: 20_000 },
];

/** @param quick measures less, and writes nothing. */
export async function compareByHand(scope: Scope, quick: boolean): Promise<void> {
  const { publicKey, privateKey } = createTestKeys();
  const merchants = await startMerchants(scope, publicKey);
  const node = merchants.check.node;
  console.log(`\nNode ${node}, ${availableParallelism()} cores`);
  const handlers: HandlerFigures[] = [];
  for (const plan of quick ? QUICK_PLANS : PLANS) {
    const count = (plan.warmUpRounds + plan.rounds) * plan.events;
    const deliveries = await signedDeliveries("rsa", count, { privateKey, secret: "" });
    const samples = await measure(merchants, plan, deliveries);
    const figures = figuresOf(plan.handlerMs, samples);
    console.log(`\n${handlerTables(figures)}`);
    handlers.push(figures);
  }
  if (quick) return;
  const results: ByHandResults = {
    node,
    cores: availableParallelism(),
    load: loadavg()[1] ?? Number.NaN,
    measuredOn: new Date().toISOString().slice(0, 10),
    handlers,
  };
  writeByHand(results);
  writeReport();
}

/** As they are installed, and with a disk that is waited for. Redis has its append-only file, flushed every second. */
const SERVERS: Readonly<Record<ServerKind, (scope: Scope) => Promise<Database>>> = {
  Redis: (scope) => RedisServer.start(scope, { aof: "everysec" }),
  PostgreSQL: (scope) => PostgresServer.start(scope, { settings: ["fsync=on"] }),
  MariaDB: async (scope) => scope.add(await startMariadb(), (one) => one.stop()),
};

export async function startMerchants(scope: Scope, publicKey: string): Promise<Merchants> {
  const { merchant: program } = await buildPrograms();
  const folder = mkdtempSync(join(tmpdir(), "payhooks-bench-"));
  scope.add(folder, () => rmSync(folder, { recursive: true }));
  const file = join(folder, "inbox.db");
  const start = async (way: Way): Promise<Merchant> => {
    const kind = SERVER_OF[way];
    const server = kind === undefined ? null : await SERVERS[kind](scope);
    return startMerchant(scope, program, { way, publicKey, file, url: server?.url ?? "" }, server);
  };
  const started: [Way, Merchant][] = [];
  for (const way of WAYS) started.push([way, await start(way)]);
  return Object.fromEntries(started) as Merchants;
}

/** Rounds: every way in turn, so that all of them get the same of a machine that does other things too. */
async function measure(
  merchants: Merchants,
  { handlerMs, events, warmUpRounds, rounds, budgetMs }: Plan,
  deliveries: readonly SignedDelivery[],
): Promise<Samples> {
  const samples = Object.fromEntries(WAYS.map((way) => [way, []])) as unknown as Record<Way, Sample[]>;
  let end = Number.POSITIVE_INFINITY;
  for (let round = 0; round < warmUpRounds + rounds; round++) {
    if (round === warmUpRounds) end = performance.now() + budgetMs;
    if (round >= warmUpRounds + ROUNDS_MIN && performance.now() > end) break;
    const turn = deliveries.slice(round * events, (round + 1) * events);
    for (const index of orderOf(round, WAYS.length)) {
      const way = WAYS[index] as Way;
      const sample = await merchants[way].take(turn, handlerMs);
      if (round >= warmUpRounds) samples[way].push(sample);
    }
  }
  return samples;
}

function figuresOf(handlerMs: number, samples: Samples): HandlerFigures {
  return {
    handlerMs,
    ways: WAYS.map((way) => {
      const figureOf = (measure: keyof Sample) => estimate(samples[way].map((sample) => sample[measure]));
      return {
        way,
        cpuUs: figureOf("cpuUs"),
        serverCpuUs: SERVER_OF[way] === undefined ? null : figureOf("serverCpuUs"),
        perSecond: figureOf("perSecond"),
      };
    }),
    goals: goalFigures(handlerMs, samples),
  };
}
