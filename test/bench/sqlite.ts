/**
 * `npm run bench -- --sqlite [--records 1000000]`: the SQLite inbox against the memory inbox in the same run, since only
 * ratios mean something on a machine that does other things too: the inbox's own step, the receiver without a server,
 * and a server. `--folder` says on which disk.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, memoryInbox } from "@payhooks/core";
import type { Inbox } from "@payhooks/core/inbox";
import { type SqliteHandle, sqliteInbox, sqliteStore } from "@payhooks/core/sqlite";
import { createTestKeys } from "@payhooks/core/testing";
import Database from "libsql";
import { newId, sampleEvent } from "../contract/sample-events.ts";
import { silent } from "../support/silent.ts";
import { signedDeliveries } from "./deliveries.ts";
import { fillStore } from "./finished-records.ts";
import { measureRounds, pairedRates, pairedRatios, WARM_UP_ROUNDS } from "./rounds.ts";
import { buildPrograms, startServer } from "./server.ts";
import { estimate, median, percentile, verdictOf } from "./statistics.ts";
import { figureOf, intervalOf } from "./table.ts";

const CONCURRENCY = 50;
/** Accepts of one turn. */
const TURN = 1_000;
const ROUNDS = 24;
/** Accepts on each file whose p99 is told, and how often. */
const EVENTS = 5_000;
const P99_ROUNDS = 5;
/** Of accepts per second: SQLite's ÷ those of memory. */
const RATE_GOAL = 0.5;

const option = (name: string, otherwise: string): string => {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : (process.argv[at + 1] ?? otherwise);
};
const RECORDS = Number(option("--records", "100000"));
const FOLDER = option("--folder", tmpdir());

interface Measured {
  /** Milliseconds of each call. */
  readonly each: readonly number[];
  readonly perSecond: number;
  readonly cpuUs: number;
}

/** Calls `work` for each number below `count`, 50 at a time. */
async function measure(count: number, work: (n: number) => unknown): Promise<Measured> {
  const each: number[] = [];
  let next = 0;
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const lane = async (): Promise<void> => {
    while (next < count) {
      const n = next++;
      const from = performance.now();
      await work(n);
      each.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
  const perSecond = (count / (performance.now() - startedAt)) * 1_000;
  const { user, system } = process.cpuUsage(cpu);
  return { each, perSecond, cpuUs: (user + system) / count };
}

const keys = { ...createTestKeys(), secret: "whsec_bench_0123456789abcdef" };
const { publicKey } = keys;

/** Makes the work of one turn on an inbox; what is not the inbox's or the receiver's is done beforehand. */
type Turns = (inbox: Inbox) => (count: number) => Promise<(n: number) => unknown>;

/** The inbox's own step, with events that are verified already. */
const accepting: Turns = (inbox) => async (count) => {
  const events = Array.from({ length: count }, () => sampleEvent(newId(), Date.now(), {}));
  for (const event of events) (event as { key: string }).key = hashed(event.key);
  return (n) => inbox.accept(events[n] ?? missing());
};

/** The whole way of a delivery but for HTTP: verified, parsed, accepted, answered. */
const receiving: Turns = (inbox) => {
  const receiver = createReceiver({ payments: { publicKey }, inbox, run: "elsewhere", logger: silent });
  return async (count) => {
    const deliveries = await signedDeliveries("rsa", count, keys);
    return async (n) => {
      const { rawBody, headers } = deliveries[n] ?? missing();
      const { status } = await receiver.payments.receive({
        method: "POST",
        url: "/callbacks/pay",
        headers: { get: (name) => headers[name] ?? null },
        rawBody,
      });
      if (status !== 200) throw new Error(`answered ${status}`);
    };
  };
};

/** A SQLite inbox in a folder of its own, with so many finished records in it, that counts what it commits. */
async function openSqlite(
  records: number,
): Promise<{ inbox: Inbox; commits(): number; end(): Promise<void> }> {
  const folder = mkdtempSync(join(FOLDER, "payhooks-bench-"));
  const file = join(folder, "inbox.db");
  if (records > 0) {
    const store = sqliteStore(file);
    await store.open();
    await fillStore(store, { from: 0, to: records });
    await store.close();
  }
  const database = new Database(file) as SqliteHandle;
  let commits = 0;
  const inbox = sqliteInbox({
    exec: (sql) => {
      if (sql === "COMMIT") commits++;
      return database.exec(sql);
    },
    prepare: (sql) => database.prepare(sql),
    close: () => database.close(),
  });
  await inbox.ready();
  commits = 0;
  return {
    inbox,
    commits: () => commits,
    async end() {
      await inbox.close({ graceMs: 0 });
      rmSync(folder, { recursive: true });
    },
  };
}

const hashed = (text: string): string => createHash("md5").update(text).digest("hex");
const p99 = (values: readonly number[]): number => percentile(values, 0.99);

function missing(): never {
  throw new Error("there is one for each");
}

interface Sides {
  readonly memory: readonly Pick<Measured, "perSecond" | "cpuUs">[];
  readonly sqlite: readonly Pick<Measured, "perSecond" | "cpuUs">[];
}

/** In turns, so that both get the same of a busy machine; the file grows as a merchant's does. */
async function measureInboxes(turnsOn: Turns): Promise<Sides & { readonly commits: number }> {
  const sqlite = await openSqlite(0);
  const onFile = turnsOn(sqlite.inbox);
  const sides = { memory: [] as Measured[], sqlite: [] as Measured[] };
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    // Nobody works off what is accepted: it would fill the memory, and be paid for by the collector.
    const memory = memoryInbox({ maxUnfinished: TURN });
    const inMemory = await measure(TURN, await turnsOn(memory)(TURN));
    await memory.close({ graceMs: 0 });
    const inSqlite = await measure(TURN, await onFile(TURN));
    if (round < WARM_UP_ROUNDS) continue;
    sides.memory.push(inMemory);
    sides.sqlite.push(inSqlite);
  }
  const commits = sqlite.commits() / ((WARM_UP_ROUNDS + ROUNDS) * TURN);
  await sqlite.end();
  return { ...sides, commits };
}

/** Express, in a process of its own. */
async function measureServed(): Promise<Sides> {
  const { server: program } = await buildPrograms();
  const server = await startServer(program, {
    publicKey,
    secret: keys.secret,
    redisUrl: null,
    nextApp: null,
    peers: null,
  });
  const deliveries = await signedDeliveries("rsa", (WARM_UP_ROUNDS + ROUNDS) * TURN, keys);
  const variants = (["memory-accept", "sqlite-accept"] as const).map(
    (mode) => ({ framework: "express", scheme: "rsa", mode }) as const,
  );
  const [memory = [], sqlite = []] = await measureRounds(server, {
    variants,
    deliveriesFor: (_variant, round) => deliveries.slice(round * TURN, (round + 1) * TURN),
    budgetMs: Number.POSITIVE_INFINITY,
    connections: CONCURRENCY,
    awake: true,
  });
  await server.end();
  return { memory, sqlite };
}

function tell(what: string, { memory, sqlite }: Sides): void {
  const rates = estimate(pairedRates(sqlite, memory));
  const cpu = estimate(pairedRatios(sqlite, memory));
  const perSecond = (side: Sides["memory"]): string =>
    median(side.map((turn) => turn.perSecond))
      .toFixed(0)
      .padStart(7);
  console.log(what);
  console.log(`  memory   ${perSecond(memory)} /s`);
  console.log(`  SQLite   ${perSecond(sqlite)} /s`);
  console.log(
    `  ratio    ${figureOf(rates.median).padStart(7)}   (${intervalOf(rates)}), at least ${RATE_GOAL}: ${verdictOf(rates, RATE_GOAL)}`,
  );
  console.log(`  CPU      ${figureOf(cpu.median).padStart(7)}   (${intervalOf(cpu)}) times that of memory`);
}

console.log(
  `Node ${process.version}, ${FOLDER}, concurrency ${CONCURRENCY}, ${ROUNDS} rounds of ${TURN} accepts\n`,
);
for (const [what, turnsOn] of [
  ["inbox.accept alone", accepting],
  ["the receiver: verify, parse, accept, answer", receiving],
] as const) {
  const measured = await measureInboxes(turnsOn);
  tell(what, measured);
  console.log(`  commits  ${measured.commits.toFixed(3).padStart(7)}   per event, one fsync each\n`);
}
tell("a server: Express 5, RSA, in a process of its own", await measureServed());

const empty: number[] = [];
const full: number[] = [];
const big = await openSqlite(RECORDS);
const p99On = async (inbox: Inbox): Promise<number> =>
  p99((await measure(EVENTS, await accepting(inbox)(EVENTS))).each);
for (let round = 0; round < P99_ROUNDS; round++) {
  const small = await openSqlite(0);
  empty.push(await p99On(small.inbox));
  await small.end();
  full.push(await p99On(big.inbox));
}
await big.end();
console.log("\np99 of inbox.accept");
console.log(`  empty file              ${median(empty).toFixed(1).padStart(7)} ms`);
console.log(`  ${String(RECORDS).padStart(9)} records       ${median(full).toFixed(1).padStart(7)} ms`);
console.log(`  ratio                   ${(median(full) / median(empty)).toFixed(2).padStart(7)}`);
