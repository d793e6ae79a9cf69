/**
 * What Redis costs: bytes per finished record, and how many events a second are accepted, against BullMQ's `add` alone
 * in the same run. `npm run bench -- --redis [--records 100000]`.
 */
import { randomUUID } from "node:crypto";
import type { IdempotencyStore, VerifiedEvent } from "@payhooks/core/inbox";
import { redisParts } from "@payhooks/core/redis";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { withScope } from "../faults/harness/scope.ts";
import { benchEvent } from "./redis-event.ts";
import { pairedRates, pairedRatios } from "./rounds.ts";
import { type Estimate, estimate, median, verdictOf } from "./statistics.ts";
import { figureOf, intervalOf } from "./table.ts";

const CONCURRENCY = 50;
const ROUND = 2_000;
const ROUNDS = 40;
const WARM_UP_ROUNDS = 8;
const silent = { info: () => {}, warn: () => {}, error: () => {} };

const at = process.argv.indexOf("--records");
const records = at < 0 ? 100_000 : Number(process.argv[at + 1]);

await withScope(async (scope) => {
  const redis = await RedisServer.start(scope, { aof: "none" });
  const parts = redisParts(redis.url, { logger: silent });
  await parts.store.ready();
  await measureRates(redis, parts);
  await redis.tell("FLUSHALL");
  await measureRecords(redis, parts.store);
  await parts.queue.close();
  await parts.store.close();
});

async function measureRates(
  redis: RedisServer,
  { store, queue }: ReturnType<typeof redisParts>,
): Promise<void> {
  const connection = new Redis(redis.url, { maxRetriesPerRequest: 1 });
  const bare = new Queue("bare", { connection, prefix: "{bare}" });
  const add = (): Promise<unknown> =>
    bare.add("inbox", null, { jobId: `${randomUUID()}-0`, removeOnComplete: true, removeOnFail: false });
  // Made beforehand: parsing and verifying is not the inbox's work.
  let events: VerifiedEvent[] = [];
  const accept = async (): Promise<void> => {
    const event = events.pop() ?? benchEvent();
    const { job } = await store.accept(event, { maxHeld: Number.POSITIVE_INFINITY, delayMs: 0 });
    await queue.add(job, { delayMs: 0 });
    await store.markQueued(job);
  };
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
  describe("accept: claim, add, flag", accepts);
  const rates = estimate(pairedRates(accepts, adds));
  const cpu = estimate(pairedRatios(adds, accepts));
  console.log(
    `ratio of the rates: ${written(rates)}, at least 0.4: ${verdictOf(rates, 0.4)} (the aim is 0.5)`,
  );
  console.log(`ratio of the processor time: ${written(cpu)} (what a busy machine blurs less)`);
  await bare.close();
  connection.disconnect();
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

async function measureRecords(redis: RedisServer, store: IdempotencyStore): Promise<void> {
  const [dataBefore, allBefore] = [await redis.info("used_memory_dataset"), await redis.info("used_memory")];
  await many(records, 100, () => finish(store, benchEvent()));
  const keys = Number(await redis.tell("DBSIZE"));
  const data = Number(await redis.info("used_memory_dataset")) - Number(dataBefore);
  const all = Number(await redis.info("used_memory")) - Number(allBefore);
  const [, sample] = (await redis.tell("SCAN", "0", "COUNT", "1")) as [string, string[]];
  const [key = ""] = sample;
  console.log(`${keys} finished records: ${(data / records).toFixed(0)} bytes each in the data set`);
  console.log(`  used_memory, with the tables of keys: ${(all / records).toFixed(0)} bytes each`);
  console.log(`  one of them: key ${key.length}, value ${await redis.tell("STRLEN", key)} bytes,`);
  console.log(`  MEMORY USAGE ${await redis.tell("MEMORY", "USAGE", key)} bytes (at most 300)`);
  console.log(`  ${await redis.tell("GET", key)}`);
}

async function finish(store: IdempotencyStore, event: VerifiedEvent): Promise<void> {
  const { job } = await store.accept(event, { maxHeld: Number.POSITIVE_INFINITY, delayMs: 0 });
  await store.markQueued(job);
  const begun = await store.begin(job, { owner: "bench", leaseMs: 30_000, force: null });
  if (begun.kind !== "leased") throw new Error(`not leased but ${begun.kind}`);
  await store.step(job, begun.lease.token, "deposit", { kind: "started" });
  await store.step(job, begun.lease.token, "deposit", { kind: "done" });
  await store.finish(job, begun.lease.token, { kind: "done" });
}

async function many(count: number, lanes: number, call: () => Promise<unknown>): Promise<void> {
  let left = count;
  const lane = async (): Promise<void> => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
