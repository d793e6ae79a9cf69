/**
 * What Redis costs: bytes of a finished record, and how many events a second are accepted, against BullMQ's `add` alone
 * in the same run. `npm run bench -- --redis [--records 100000]`.
 */
import { randomUUID } from "node:crypto";
import type { VerifiedEvent } from "@payhooks/core/inbox";
import { redisInbox, redisStore } from "@payhooks/core/redis";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { withScope } from "../faults/harness/scope.ts";
import { fillStore } from "./fill.ts";
import { RECORD_BYTES_GOAL } from "./goals.ts";
import { benchEvent } from "./redis-event.ts";
import { pairedRates, pairedRatios } from "./rounds.ts";
import { type Estimate, estimate, median, verdictOf } from "./statistics.ts";
import { figureOf, intervalOf } from "./table.ts";

const CONCURRENCY = 50;
const ROUND = 2_000;
const ROUNDS = 40;
const WARM_UP_ROUNDS = 8;

const at = process.argv.indexOf("--records");
const records = at < 0 ? 100_000 : Number(process.argv[at + 1]);

await withScope(async (scope) => {
  const redis = await RedisServer.start(scope, { aof: "none" });
  await measureRates(redis);
  await redis.tell("FLUSHALL");
  await measureRecords(redis);
});

async function measureRates(redis: RedisServer): Promise<void> {
  const inbox = redisInbox(redis.url);
  await inbox.ready();
  const connection = new Redis(redis.url, { maxRetriesPerRequest: 1 });
  const bare = new Queue("bare", { connection, prefix: "{bare}" });
  const add = (): Promise<unknown> =>
    bare.add("inbox", null, { jobId: `${randomUUID()}-0`, removeOnComplete: true, removeOnFail: false });
  // Made beforehand: parsing and verifying is not the inbox's work.
  let events: VerifiedEvent[] = [];
  const accept = async (): Promise<void> => void (await inbox.accept(events.pop() ?? benchEvent()));
  const adds: Cost[] = [];
  const accepts: Cost[] = [];
  // In turns, so that both get the same of a busy machine.
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    events = Array.from({ length: ROUND }, benchEvent);
    const [added, accepted] = [await cost(redis, add), await cost(redis, accept)];
    if (round < WARM_UP_ROUNDS) continue;
    adds.push(added);
    accepts.push(accepted);
  }
  describe("BullMQ add alone", adds);
  describe("accept, the record and what it is found by", accepts);
  const rates = estimate(pairedRates(accepts, adds));
  const cpu = estimate(pairedRatios(accepts, adds));
  console.log(`ratio of the rates: ${written(rates)}, at least 0.5: ${verdictOf(rates, 0.5)}`);
  console.log(`ratio of the processor time: ${written(cpu)} (what a busy machine blurs less)`);
  await bare.close();
  connection.disconnect();
  await inbox.close({ graceMs: 0 });
}

interface Cost {
  readonly perSecond: number;
  /** Microseconds of this process and of Redis together, per call. */
  readonly cpuUs: number;
}

async function cost(redis: RedisServer, call: () => Promise<unknown>): Promise<Cost> {
  const serverBefore = await serverCpuUs(redis);
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await many(ROUND, CONCURRENCY, call);
  const perSecond = ROUND / ((performance.now() - startedAt) / 1000);
  const { user, system } = process.cpuUsage(cpuBefore);
  const server = (await serverCpuUs(redis)) - serverBefore;
  return { perSecond, cpuUs: (user + system + server) / ROUND };
}

async function serverCpuUs(redis: RedisServer): Promise<number> {
  const seconds = Number(await redis.info("used_cpu_user")) + Number(await redis.info("used_cpu_sys"));
  return seconds * 1_000_000;
}

function written(ratio: Estimate): string {
  return `${figureOf(ratio.median)} (${intervalOf(ratio)})`;
}

function describe(what: string, costs: readonly Cost[]): void {
  const perSecond = median(costs.map((one) => one.perSecond));
  const cpuUs = median(costs.map((one) => one.cpuUs));
  console.log(
    `${what}, concurrency ${CONCURRENCY}: ${Math.round(perSecond)} per second, ${Math.round(cpuUs)} µs of processor time each`,
  );
}

/** What is kept of events that are done, all that Redis keeps besides them included. */
async function measureRecords(redis: RedisServer): Promise<void> {
  const store = redisStore(redis.url);
  await store.open();
  const used = async (what: string): Promise<number> => Number(await redis.info(what));
  const [dataBefore, allBefore] = [await used("used_memory_dataset"), await used("used_memory")];
  await fillStore(store, { from: 0, to: records });
  const data = (await used("used_memory_dataset")) - dataBefore;
  const all = (await used("used_memory")) - allBefore;
  const key = await anyRecord(redis);
  const usage = Number(await redis.tell("MEMORY", "USAGE", key));
  const verdict = usage <= RECORD_BYTES_GOAL ? "met" : "missed";
  console.log(`${records} finished events, ${await redis.tell("DBSIZE")} keys`);
  console.log(
    `  MEMORY USAGE of a record: ${usage} bytes, at most ${RECORD_BYTES_GOAL}: ${verdict}` +
      ` (key ${key.length}, text ${await redis.tell("STRLEN", key)} bytes)`,
  );
  console.log(`  per event, in the data set: ${(data / records).toFixed(0)} bytes`);
  console.log(
    `  per event, used_memory, with all tables and indexes: ${(all / records).toFixed(0)} bytes` +
      ` (tables double now and then: right after that it is more)`,
  );
  console.log(`  ${await redis.tell("GET", key)}`);
  await store.close();
}

/** The key of some record: it ends with the record's own, 32 hexadecimal digits. */
async function anyRecord(redis: RedisServer): Promise<string> {
  const [, keys] = (await redis.tell("SCAN", "0", "COUNT", "1000")) as [string, readonly string[]];
  const key = keys.find((one) => /:[0-9a-f]{32}$/.test(one));
  if (key === undefined) throw new Error("there is no record");
  return key;
}

async function many(count: number, lanes: number, call: () => Promise<unknown>): Promise<void> {
  let left = count;
  const lane = async (): Promise<void> => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
