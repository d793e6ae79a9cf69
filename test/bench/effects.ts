/** `npm run bench -- --effects`: what `ctx.transaction` costs per event, beside a transaction that is written by hand. */
import { loadavg } from "node:os";
import { pgEffects } from "@payhooks/core/effects/postgres";
import { Pool, type PoolClient } from "pg";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { cpuUsOf } from "../support/process-tree.ts";

const ROUNDS = 9;
const EVENTS = 2_000;
const AT_ONE_TIME = 8;

/** One way to book an event. */
interface Way {
  readonly name: string;
  readonly book: (event: string) => Promise<unknown>;
}

/** The cost of one event. */
interface Cost {
  readonly processUs: number;
  readonly postgresUs: number;
  readonly perSecond: number;
}

const scope = new Scope();
const server = await PostgresServer.start(scope);
const pool = new Pool({ connectionString: server.url, max: AT_ONE_TIME });
pool.on("error", () => {});
await pool.query("CREATE TABLE orders (reference integer PRIMARY KEY, paid integer NOT NULL)");
await pool.query("INSERT INTO orders SELECT n, 0 FROM generate_series(0, 999) AS n");
await pool.query("CREATE TABLE effects (id text PRIMARY KEY)");

let events = 0;
const pay = (client: PoolClient): Promise<unknown> =>
  client.query("UPDATE orders SET paid = paid + 1 WHERE reference = $1", [events % 1_000]);

async function inTransaction(work: (client: PoolClient) => Promise<unknown>): Promise<void> {
  const client = await pool.connect();
  await client.query("BEGIN");
  await work(client);
  await client.query("COMMIT");
  client.release();
}

const effects = pgEffects(pool);
await effects.open();

const ways: readonly Way[] = [
  { name: "a transaction by hand: books twice after a death", book: () => inTransaction(pay) },
  {
    name: "the recipe by hand: the insert of the id in it",
    book: (id) =>
      inTransaction(async (client) => {
        await client.query("INSERT INTO effects (id) VALUES ($1) ON CONFLICT DO NOTHING", [id]);
        await pay(client);
      }),
  },
  {
    name: "ctx.transaction",
    book: (effectId) => {
      const now = Date.now();
      const { signal } = new AbortController();
      const run = { effectId, signal, receivedAt: now, now, evenIfExpired: false, onSkipped: () => {} };
      return effects.forRun(run).methods.transaction(pay);
    },
  },
];

/** Of every process of the server, the ones that serve us. */
async function postgresUs(): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE datname IS NOT NULL",
  );
  return rows.reduce((sum, { pid }) => sum + cpuUsOf(pid), 0);
}

async function measure({ book }: Way): Promise<Cost> {
  const before = await postgresUs();
  const cpu = process.cpuUsage();
  const from = performance.now();
  let left = EVENTS;
  const lane = async (): Promise<void> => {
    while (left-- > 0) await book(`event-${++events}.deposit`);
  };
  await Promise.all(Array.from({ length: AT_ONE_TIME }, lane));
  const ms = performance.now() - from;
  const { user, system } = process.cpuUsage(cpu);
  return {
    processUs: (user + system) / EVENTS,
    postgresUs: ((await postgresUs()) - before) / EVENTS,
    perSecond: (EVENTS / ms) * 1_000,
  };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const costs = new Map<Way, Cost[]>(ways.map((way) => [way, []]));
for (const way of ways) await measure(way);
for (let round = 0; round < ROUNDS; round++) {
  for (let at = 0; at < ways.length; at++) {
    const way = ways[(at + round) % ways.length];
    if (way !== undefined) costs.get(way)?.push(await measure(way));
  }
}
console.log(
  `Node ${process.versions.node}, load ${loadavg()[0]?.toFixed(1)}, median of ${ROUNDS} rounds of ${EVENTS}`,
);
console.table(
  Object.fromEntries(
    [...costs].map(([{ name }, rounds]) => [
      name,
      {
        "process, µs": Math.round(median(rounds.map((one) => one.processUs))),
        "PostgreSQL, µs": Math.round(median(rounds.map((one) => one.postgresUs))),
        "events per second": Math.round(median(rounds.map((one) => one.perSecond))),
      },
    ]),
  ),
);
await pool.end();
await scope.close();
