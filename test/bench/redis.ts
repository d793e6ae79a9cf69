/**
 * What Redis costs: the server's processor time of an event's life, against `SET NX` with BullMQ's `add` and worker in the
 * same run, and bytes per finished record. `npm run bench -- --redis [--records 100000]`.
 */
import { randomUUID } from "node:crypto";
import { createInbox, type Inbox } from "@payhooks/core/inbox";
import { redisStore } from "@payhooks/core/redis";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { RunEnd, RunHandle, Runner } from "../../packages/core/src/inbox/contract/inbox.ts";
import type { VerifiedEvent } from "../../packages/core/src/inbox/record/event.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import { benchEvent } from "./redis-event.ts";
import { pairedRatios } from "./rounds.ts";
import { type Estimate, estimate, median, verdictOf } from "./statistics.ts";
import { figureOf, intervalOf } from "./table.ts";

const LANES = 50;
const ROUND = 2_000;
const ROUNDS = 20;
const WARM_UP_ROUNDS = 4;
/** How many times less of the server's processor time an event is to take here: it may take 0.35 of it. */
const GOAL = 1 / 0.35;
const WINDOW_MS = 8 * 86_400_000;

const at = process.argv.indexOf("--records");
const records = at < 0 ? 100_000 : Number(process.argv[at + 1]);

/** A way to bring events through Redis. */
interface Way {
  /** Resolves when all of them are done. */
  run(events: readonly VerifiedEvent[]): Promise<void>;
  close(): Promise<unknown>;
}

await withScope(async (scope) => {
  const [server, other] = [
    await RedisServer.start(scope, { aof: "none" }),
    await RedisServer.start(scope, { aof: "none" }),
  ];
  const inbox = createInbox(redisStore(server.url, { logger: silent }));
  const [ours, byHand] = [await inboxWay(inbox), await handWay(other)];
  const costs: { readonly ours: Cost[]; readonly byHand: Cost[] } = { ours: [], byHand: [] };
  // In turns, so that both get the same of a busy machine.
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    const our = await costOf(server, ours);
    const their = await costOf(other, byHand);
    if (round < WARM_UP_ROUNDS) continue;
    costs.ours.push(our);
    costs.byHand.push(their);
  }
  describe("SET NX, BullMQ add, worker", costs.byHand);
  describe("accept, run, end", costs.ours);
  const ratio = estimate(pairedRatios(costs.byHand, costs.ours));
  console.log(
    `the server's time, times less: ${written(ratio)}, at least ${figureOf(GOAL)}: ${verdictOf(ratio, GOAL)}`,
  );
  await server.tell("FLUSHALL");
  await measureRecords(server, ours);
  await Promise.all([ours.close(), byHand.close()]);
});

/** Handlers that have nothing to do. */
async function inboxWay(inbox: Inbox): Promise<Way> {
  let done = (): void => {};
  const runner: Runner = {
    firstHandler: () => "deposit",
    handlersOf: () => [],
    notify: () => {},
    async run(run: RunHandle): Promise<RunEnd> {
      run.noteCall();
      return {
        outcome: { kind: "done" },
        changes: [{ name: "deposit", kind: "done", attempt: 1 }],
        onWritten: () => done(),
      };
    },
  };
  await inbox.ready();
  await inbox.run(runner, { concurrency: ROUND });
  return {
    async run(events) {
      let left = events.length;
      const all = new Promise<void>((resolve) => {
        done = () => {
          if (--left === 0) resolve();
        };
      });
      await inLanes(events, (event) => inbox.accept(event));
      await all;
    },
    close: () => inbox.close({ graceMs: 1_000 }),
  };
}

async function handWay(server: RedisServer): Promise<Way> {
  const connection = new Redis(server.url, { maxRetriesPerRequest: null });
  const queue = new Queue("events", { connection, prefix: "{events}" });
  const ended = new Map<string, () => void>();
  const own = connection.duplicate();
  const worker = new Worker("events", async () => {}, {
    connection: own,
    prefix: "{events}",
    concurrency: LANES,
  });
  worker.on("completed", ({ id = "" }) => ended.get(id)?.());
  await worker.waitUntilReady();
  return {
    run: (events) =>
      inLanes(events, async ({ delivery }) => {
        const jobId = randomUUID();
        const end = new Promise<void>((resolve) => ended.set(jobId, resolve));
        if ((await connection.set(`seen:${jobId}`, "1", "PX", WINDOW_MS, "NX")) === null) return;
        const body = Buffer.from(delivery.content).toString();
        await queue.add("event", body, { jobId, removeOnComplete: true });
        await end;
        ended.delete(jobId);
      }),
    async close() {
      await worker.close();
      await queue.close();
      for (const one of [own, connection]) one.disconnect();
    },
  };
}

interface Cost {
  readonly perSecond: number;
  /** Microseconds of Redis per event. */
  readonly cpuUs: number;
}

async function costOf(server: RedisServer, way: Way): Promise<Cost> {
  // Made beforehand: parsing and verifying is not the inbox's work.
  const events = Array.from({ length: ROUND }, benchEvent);
  const before = await serverCpuUs(server);
  const startedAt = performance.now();
  await way.run(events);
  const perSecond = ROUND / ((performance.now() - startedAt) / 1000);
  return { perSecond, cpuUs: ((await serverCpuUs(server)) - before) / ROUND };
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
    `${what}, ${LANES} at a time: ${Math.round(cpuUs)} µs of Redis each, ${Math.round(perSecond)} per second`,
  );
}

async function measureRecords(redis: RedisServer, way: Way): Promise<void> {
  const [dataBefore, allBefore] = [await redis.info("used_memory_dataset"), await redis.info("used_memory")];
  for (let left = records; left > 0; left -= ROUND) {
    await way.run(Array.from({ length: Math.min(left, ROUND) }, benchEvent));
  }
  const keys = Number(await redis.tell("DBSIZE"));
  const data = Number(await redis.info("used_memory_dataset")) - Number(dataBefore);
  const all = Number(await redis.info("used_memory")) - Number(allBefore);
  const [, sample] = (await redis.tell("SCAN", "0", "COUNT", "10")) as [string, string[]];
  const key = sample.find((name) => /:[0-9a-f]{32}$/.test(name)) ?? "";
  console.log(`${keys} finished records: ${(data / records).toFixed(0)} bytes each in the data set`);
  console.log(`  used_memory, with the tables of keys: ${(all / records).toFixed(0)} bytes each`);
  console.log(`  one of them: key ${key.length}, value ${await redis.tell("STRLEN", key)} bytes,`);
  console.log(`  MEMORY USAGE ${await redis.tell("MEMORY", "USAGE", key)} bytes (at most 430)`);
  console.log(`  ${await redis.tell("GET", key)}`);
}

async function inLanes<T>(all: readonly T[], call: (one: T) => unknown): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let one = all[next++]; one !== undefined; one = all[next++]) await call(one);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}
