/**
 * `npm run bench -- --soak [--minutes 60] [--rate 100] [--postgres]`: an inbox of each kind side by side, each in a process of its own,
 * at a steady load of so many events a second. Their records expire after a while, so that everything that is sampled has
 * to come to rest: memory, heap, descriptors, connections, and what the store keeps. With `--postgres` PostgreSQL alone.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { postgresBin } from "../../scripts/postgres-server.mjs";
import { hasRedis } from "../../scripts/redis-server.mjs";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { withScope } from "../faults/harness/scope.ts";
import type { InboxName } from "./inboxes.ts";
import { median } from "./statistics.ts";
import { table } from "./table.ts";

/** The load on one inbox. */
export interface SoakSettings {
  readonly redisUrl: string | null;
  readonly postgresUrl: string | null;
  /** Events a second. */
  readonly rate: number;
  /** How long a finished record is kept. */
  readonly retentionMs: number;
  /** The file of SQLite. */
  readonly folder: string;
}

/** The contents of one inbox at a moment. */
export interface SoakSample {
  readonly accepted: number;
  readonly handled: number;
  readonly failed: number;
  readonly rss: number;
  readonly heap: number;
  readonly descriptors: number;
  readonly connections: number;
  /** Records in memory, pages of SQLite's file, keys of Redis, pages of PostgreSQL's tables and indexes. */
  readonly keys: number;
}

const option = (name: string, otherwise: number): number => {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
};
const MINUTES = option("--minutes", 60);
const RATE = option("--rate", 100);
const RUN_MS = MINUTES * 60_000;
/** Each minute, and in a short run often enough for a slope. */
const SAMPLE_MS = Math.min(60_000, RUN_MS / 18);
const RETENTION_MS = Math.min(60_000, RUN_MS / 9);
/** An inbox deletes once a minute what has expired: until it has twice, what is kept grows. */
const WARM_UP_MS = Math.max(RETENTION_MS + 120_000, RUN_MS / 4);
if (MINUTES < 3) throw new Error("in less than 3 minutes nothing comes to rest");

/** The samples, and by how much each may grow in the whole run: by a share of itself, and in any case by the other number. */
const MEASURES = {
  rss: { unit: "MB", per: 1_048_576, share: 0.1, floor: 8 },
  heap: { unit: "MB", per: 1_048_576, share: 0.1, floor: 2 },
  descriptors: { unit: "", per: 1, share: 0, floor: 2 },
  connections: { unit: "", per: 1, share: 0, floor: 1 },
  keys: { unit: "", per: 1, share: 0.1, floor: 200 },
} as const;

interface Soaked {
  readonly name: InboxName;
  readonly child: ChildProcess;
  readonly samples: SoakSample[];
}

await withScope(async (scope) => {
  const isPostgresAlone = process.argv.includes("--postgres");
  const redis = hasRedis() && !isPostgresAlone ? await RedisServer.start(scope, { aof: "everysec" }) : null;
  const postgres = postgresBin() === null ? null : await PostgresServer.start(scope);
  const folder = scope.add(mkdtempSync(join(tmpdir(), "payhooks-soak-")), async (one) =>
    rmSync(one, { recursive: true }),
  );
  const names: readonly InboxName[] = [
    ...(isPostgresAlone ? [] : (["memory", "SQLite"] as const)),
    ...(redis === null ? [] : (["Redis"] as const)),
    ...(postgres === null ? [] : (["PostgreSQL"] as const)),
  ];
  const urls = { redisUrl: redis?.url ?? null, postgresUrl: postgres?.url ?? null };
  const settings = { ...urls, rate: RATE, retentionMs: RETENTION_MS, folder };
  const soaked: Soaked[] = [];
  for (const name of names) soaked.push({ name, child: await startInbox(name, settings), samples: [] });
  console.log(
    `${RATE} events a second on each inbox for ${MINUTES} minutes, records kept for ${RETENTION_MS / 1_000} s`,
  );
  for (let from = 0; from < RUN_MS; from += SAMPLE_MS) {
    await wait(SAMPLE_MS);
    for (const one of soaked) {
      const sample = await sampleOf(one, folder, redis, postgres);
      one.samples.push(sample);
      console.log(lineOf(one.name, sample));
      if (one.name === "PostgreSQL" && postgres !== null) console.log(await sizesOf(postgres));
    }
  }
  for (const { child } of soaked) {
    const exited = once(child, "exit");
    child.send("end");
    await exited;
  }
  const verdicts = soaked.flatMap(verdictsOf);
  console.log(
    `\n${table(["inbox", "what", "median", "slope per hour", "grew in the run", "at most", "verdict"], verdicts)}`,
  );
  if (verdicts.some((row) => row.at(-1) === "missed")) process.exitCode = 1;
});

async function startInbox(name: InboxName, settings: SoakSettings): Promise<ChildProcess> {
  const program = fileURLToPath(new URL("./soak-inbox.ts", import.meta.url));
  const child = fork(program, [JSON.stringify({ ...settings, name })], { execArgv: ["--import=tsx"] });
  await once(child, "message");
  return child;
}

async function sampleOf(
  { name, child }: Soaked,
  folder: string,
  redis: RedisServer | null,
  postgres: PostgresServer | null,
): Promise<SoakSample> {
  child.send("sample");
  const [sample] = (await once(child, "message")) as [SoakSample];
  switch (name) {
    case "memory":
      return sample;
    case "SQLite":
      return { ...sample, keys: pagesOf(join(folder, "inbox.db")) };
    case "Redis":
      return { ...sample, keys: Number(await redis?.tell("DBSIZE")) };
    case "PostgreSQL":
      return { ...sample, keys: (await tablesOf(postgres)).reduce((sum, { pages }) => sum + pages, 0) };
  }
}

interface TableSize {
  readonly table: string;
  readonly live: number;
  readonly dead: number;
  readonly tableKb: number;
  readonly indexKb: number;
  /** Of the table and its indexes. */
  readonly pages: number;
}

async function tablesOf(postgres: PostgresServer | null): Promise<readonly TableSize[]> {
  const rows = await postgres?.tell(`
    SELECT relname AS table, n_live_tup::int AS live, n_dead_tup::int AS dead,
      (pg_table_size(relid) / 1024)::int AS "tableKb", (pg_indexes_size(relid) / 1024)::int AS "indexKb",
      (pg_total_relation_size(relid) / current_setting('block_size')::int)::int AS pages
    FROM pg_stat_user_tables WHERE schemaname = 'payhooks' ORDER BY relname`);
  return (rows ?? []) as unknown as readonly TableSize[];
}

async function sizesOf(postgres: PostgresServer): Promise<string> {
  const lines = (await tablesOf(postgres)).map(
    ({ table: name, live, dead, tableKb, indexKb }) =>
      `${name} ${live} rows, ${dead} dead, ${tableKb} kB and ${indexKb} kB of indexes`,
  );
  return `           ${lines.join("; ")}`;
}

function pagesOf(file: string): number {
  const database = new Database(file, { readonly: true });
  try {
    const row = database.prepare("PRAGMA page_count").get() as { readonly page_count: number };
    return row.page_count;
  } finally {
    database.close();
  }
}

function lineOf(name: InboxName, { accepted, handled, failed, ...sample }: SoakSample): string {
  const figures = Object.entries(MEASURES).map(([what, { unit, per }]) => {
    const value = sample[what as keyof typeof MEASURES] / per;
    return `${what} ${value.toFixed(unit === "" ? 0 : 1)}${unit}`;
  });
  return `${name.padEnd(6)} ${handled} of ${accepted} ran, ${failed} failed, ${figures.join(", ")}`;
}

function verdictsOf({ name, samples }: Soaked): readonly string[][] {
  const last = samples.at(-1);
  const lost = (last?.failed ?? 0) > 0 || (last?.handled ?? 0) < (last?.accepted ?? 0) - RATE * 5;
  const settled = samples.slice(Math.floor(WARM_UP_MS / SAMPLE_MS) - 1);
  const rows = Object.entries(MEASURES).map(([what, { unit, per, share, floor }]) => {
    const values = settled.map((sample) => sample[what as keyof typeof MEASURES] / per);
    const middle = median(values);
    const perSample = slopeOf(values);
    const grew = perSample * (values.length - 1);
    const most = Math.max(floor, middle * share);
    const shown = (value: number): string => `${value.toFixed(unit === "" ? 0 : 1)} ${unit}`.trim();
    return [
      name,
      what,
      shown(middle),
      shown(perSample * (3_600_000 / SAMPLE_MS)),
      shown(grew),
      shown(most),
      grew <= most ? "met" : "missed",
    ];
  });
  const ran = `${last?.handled} of ${last?.accepted}`;
  return [...rows, [name, "ran", ran, "", "", "", lost ? "missed" : "met"]];
}

/** The median of the slopes between every two values: no outlier moves it. */
function slopeOf(values: readonly number[]): number {
  return median(
    values.flatMap((from, i) => values.slice(i + 1).map((to, distance) => (to - from) / (distance + 1))),
  );
}
