/**
 * `npm run bench -- --sqlite [--records 1000000]`: the SQLite inbox against the memory inbox in the same run, since only
 * ratios mean something on a machine that does other things too. `--folder` says on which disk.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, memoryInbox } from "@payhooks/core";
import type { Inbox } from "@payhooks/core/inbox";
import { type SqliteHandle, sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  createTestKeys,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import Database from "libsql";
import { newId, sampleEvent } from "../contract/sample-events.ts";
import { fillSqlite } from "./fill.ts";
import { median, percentile } from "./statistics.ts";

const CONCURRENCY = 50;
const EVENTS = 5_000;
const ROUNDS = 5;

const option = (name: string, otherwise: string): string => {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : (process.argv[at + 1] ?? otherwise);
};
const RECORDS = Number(option("--records", "100000"));
const FOLDER = option("--folder", tmpdir());

/** Calls `work` for each number, 50 at a time; milliseconds of each call, and of all. */
async function measure(
  work: (n: number) => Promise<unknown>,
): Promise<{ each: number[]; perSecond: number; cpuUs: number }> {
  const each: number[] = [];
  let next = 0;
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const lane = async (): Promise<void> => {
    while (next < EVENTS) {
      const n = next++;
      const from = performance.now();
      await work(n);
      each.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
  const perSecond = (EVENTS / (performance.now() - startedAt)) * 1_000;
  const { user, system } = process.cpuUsage(cpu);
  return { each, perSecond, cpuUs: (user + system) / EVENTS };
}

const { privateKey, publicKey } = createTestKeys();
const silent = { info: () => {}, warn: () => {}, error: () => {} };

function signed(count: number): readonly SignedDelivery[] {
  return Array.from({ length: count }, () => signPaymentCallback(callbackFields(), privateKey));
}

/** The inbox's own step, with events that are verified already. */
const acceptOn = (inbox: Inbox) => {
  const events = Array.from({ length: EVENTS }, () => sampleEvent(newId(), Date.now(), {}));
  for (const event of events) (event as { key: string }).key = hashed(event.key);
  return (n: number) => inbox.accept(events[n] ?? missing());
};

/** The whole way of a delivery but for HTTP: verified, parsed, accepted, answered. */
const receiveOn = (inbox: Inbox) => {
  const receiver = createReceiver({ payments: { publicKey }, inbox, run: "elsewhere", logger: silent });
  const deliveries = signed(EVENTS);
  return async (n: number) => {
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

/** A SQLite inbox in a folder of its own, with so many finished records in it, that counts what it commits. */
async function openSqlite(
  records: number,
): Promise<{ inbox: Inbox; commits(): number; end(): Promise<void> }> {
  const folder = mkdtempSync(join(FOLDER, "payhooks-bench-"));
  const database = new Database(join(folder, "inbox.db")) as SqliteHandle;
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
  if (records > 0) {
    await inbox.accept(sampleEvent(newId(), Date.now()));
    await inbox.work(
      { run: async () => ({ kind: "done" }), notify: () => {} },
      { deadlineMs: 60_000, limit: 1, concurrency: 1 },
    );
    fillSqlite(database, { from: 0, to: records });
  }
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

console.log(
  `Node ${process.version}, ${FOLDER}, concurrency ${CONCURRENCY}, ${ROUNDS} rounds of ${EVENTS} events\n`,
);
for (const [name, workOn] of [
  ["inbox.accept alone", acceptOn],
  ["receive: verify, parse, accept, answer", receiveOn],
] as const) {
  const rates = {
    memory: [] as number[],
    sqlite: [] as number[],
    ratio: [] as number[],
    commits: [] as number[],
    cpu: [] as number[],
  };
  for (let round = 0; round < ROUNDS; round++) {
    const memory = memoryInbox({ maxUnfinished: 10 * EVENTS });
    const inMemory = await measure(workOn(memory));
    await memory.close({ graceMs: 0 });
    const sqlite = await openSqlite(0);
    const inSqlite = await measure(workOn(sqlite.inbox));
    rates.commits.push(sqlite.commits() / EVENTS);
    await sqlite.end();
    rates.memory.push(inMemory.perSecond);
    rates.sqlite.push(inSqlite.perSecond);
    rates.ratio.push(inSqlite.perSecond / inMemory.perSecond);
    rates.cpu.push(inSqlite.cpuUs / inMemory.cpuUs);
  }
  console.log(name);
  console.log(`  memory   ${median(rates.memory).toFixed(0).padStart(7)} /s`);
  console.log(`  SQLite   ${median(rates.sqlite).toFixed(0).padStart(7)} /s`);
  console.log(
    `  ratio    ${median(rates.ratio).toFixed(2).padStart(7)}   (rounds: ${rates.ratio.map((r) => r.toFixed(2)).join(" ")})`,
  );
  console.log(`  CPU      ${median(rates.cpu).toFixed(2).padStart(7)}   times that of memory, per event`);
  console.log(`  commits  ${median(rates.commits).toFixed(3).padStart(7)}   per event, one fsync each\n`);
}

const empty: number[] = [];
const full: number[] = [];
const big = await openSqlite(RECORDS);
for (let round = 0; round < ROUNDS; round++) {
  const small = await openSqlite(0);
  empty.push(p99((await measure(acceptOn(small.inbox))).each));
  await small.end();
  full.push(p99((await measure(acceptOn(big.inbox))).each));
}
await big.end();
console.log("p99 of inbox.accept");
console.log(`  empty file              ${median(empty).toFixed(1).padStart(7)} ms`);
console.log(`  ${String(RECORDS).padStart(9)} records       ${median(full).toFixed(1).padStart(7)} ms`);
console.log(`  ratio                   ${(median(full) / median(empty)).toFixed(2).padStart(7)}`);
