import { randomUUID } from "node:crypto";
import type { Job as BullJob, Queue as BullQueue, Worker as BullWorker, WorkerOptions } from "bullmq";
import type { Cluster, Redis } from "ioredis";
import { PayhooksError } from "../errors.ts";
import { type Job, jobId, parseJobId } from "../inbox/inbox.ts";
import type { ConsumeOptions, Disposition, Queue } from "../inbox/store.ts";
import { inboxError } from "../notices.ts";

type BullMq = typeof import("bullmq");

/** What the queue takes from the inbox. */
export interface BullQueueOptions {
  /** The connection for adding: fails fast. */
  readonly connection: () => Promise<Redis | Cluster>;
  /** A connection of its own that waits for as long as it takes: for workers. */
  readonly workerConnection: () => Promise<Redis | Cluster>;
  readonly prefix: string;
  readonly leaseMs: number;
  /** How often stalled jobs, and workers that stand still, are looked for. */
  readonly stallCheckMs: number;
  readonly barrier?: (() => Promise<void>) | undefined;
}

const NAME = "inbox";
/**
 * BullMQ counts neither tries nor stalls here: both decide about an event, and that is the record's to do. Its
 * default of one stall fails a job for good when its worker dies twice, without a word.
 */
const NEVER_DECIDES = 1_000_000_000;

/** Jobs in BullMQ, under one hash tag so that a cluster keeps them together. */
export function bullQueue(options: BullQueueOptions): Queue {
  const { connection, workerConnection, leaseMs, stallCheckMs } = options;
  const prefix = `{${options.prefix}}`;
  let queue: Promise<BullQueue> | null = null;
  let taker: Promise<BullWorker> | null = null;
  let closed = false;

  async function makeQueue(): Promise<BullQueue> {
    const { Queue: BullQueueClass } = await loadBullMq();
    const made = new BullQueueClass(NAME, {
      connection: await connection(),
      prefix,
      skipWaitingForReady: true,
    });
    // Errors of commands reach their callers; those of the connection are repeated by the next command.
    made.on("error", () => {});
    return made;
  }

  function theQueue(): Promise<BullQueue> {
    queue ??= makeQueue().catch((error: unknown) => {
      queue = null;
      throw error;
    });
    return queue;
  }

  function workerOptions(client: Redis | Cluster): WorkerOptions {
    return {
      connection: client,
      prefix,
      lockDuration: leaseMs,
      stalledInterval: stallCheckMs,
      maxStalledCount: NEVER_DECIDES,
      drainDelay: Math.max(1, Math.min(5, stallCheckMs / 1000)),
      runRetryDelay: Math.min(1_000, stallCheckMs),
      removeOnComplete: { count: 0 },
    };
  }

  async function makeTaker(): Promise<BullWorker> {
    const { Worker: BullWorkerClass } = await loadBullMq();
    const client = await workerConnection();
    // Two passes of the stall check, a moment apart, take back what a dead worker held.
    const made = new BullWorkerClass(NAME, null, {
      ...workerOptions(client),
      stalledInterval: 1,
      autorun: false,
    });
    made.on("error", () => {});
    made.once("closed", () => client.disconnect());
    await made.waitUntilReady();
    return made;
  }

  function theTaker(): Promise<BullWorker> {
    taker ??= makeTaker().catch((error: unknown) => {
      taker = null;
      throw error;
    });
    return taker;
  }

  return {
    async ready() {
      await (await theQueue()).waitUntilReady();
    },
    async add(job, { delayMs }) {
      await (await theQueue()).add(NAME, null, {
        jobId: jobId(job),
        ...(delayMs > 0 ? { delay: Math.ceil(delayMs) } : {}),
        attempts: NEVER_DECIDES,
        backoff: { type: "fixed", delay: 5_000 },
        removeOnComplete: true,
      });
    },
    async hasten(job) {
      const waiting = await (await theQueue()).getJob(jobId(job));
      // A job that is not delayed refuses: then it is due, or being worked on, already.
      await waiting?.promote().catch(() => {});
    },
    ...(options.barrier === undefined ? {} : { barrier: options.barrier }),
    async consume(process, consumeOptions) {
      const bullmq = await loadBullMq();
      return startConsumer(bullmq, { ...options, process, consumeOptions, workerOptions, theQueue });
    },
    async take() {
      const worker = await theTaker();
      const token = randomUUID();
      for (;;) {
        const taken = await worker.getNextJob(token, { block: false });
        if (taken === undefined) return null;
        const job = parseJobId(taken.id ?? "");
        if (job !== null) return { job, settle: (disposition) => settle(taken, token, disposition) };
        await taken.moveToCompleted(undefined, token, false);
      }
    },
    async recover() {
      const worker = await theTaker();
      for (let pass = 0; pass < 2; pass++) {
        await recoverStalled(worker);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    async pending() {
      const open = await theQueue();
      const { waiting = 0, prioritized = 0 } = await open.getJobCounts("waiting", "prioritized");
      // The score is what BullMQ goes by: 12 bits of order below the time. A job's own fields tell when it was added.
      const delayed = `${prefix}:${NAME}:delayed`;
      const [, score] = await (await connection()).zrange(delayed, "0", "0", "WITHSCORES");
      const nextDueAt = score === undefined ? null : Math.floor(Number(score) / 4096);
      return { due: waiting + prioritized, nextDueAt };
    },
    async close() {
      if (closed) return;
      closed = true;
      const [openQueue, openTaker] = await Promise.all([queue?.catch(() => null), taker?.catch(() => null)]);
      await openTaker?.close(true);
      await openQueue?.close();
    },
  };
}

/** `getNextJob` alone never takes back a dead worker's jobs. */
async function recoverStalled(worker: BullWorker): Promise<void> {
  await (worker as unknown as { moveStalledJobsToWait(): Promise<void> }).moveStalledJobsToWait();
}

async function settle(taken: BullJob, token: string, disposition: Disposition): Promise<void> {
  try {
    if (disposition === "finished") await taken.moveToCompleted(undefined, token, false);
    else await taken.moveToDelayed(Date.now() + Math.ceil(disposition.againInMs), token);
  } catch (error) {
    // The lock was lost: the job is another worker's, and the record says what is left to do.
    if (!isLostLock(error)) throw error;
  }
}

function isLostLock(error: unknown): boolean {
  return error instanceof Error && /lock|not in the active state/i.test(error.message);
}

interface ConsumerParts extends BullQueueOptions {
  readonly process: (job: Job) => Promise<Disposition>;
  readonly consumeOptions: ConsumeOptions;
  readonly workerOptions: (client: Redis | Cluster) => WorkerOptions;
  readonly theQueue: () => Promise<BullQueue>;
}

/** A worker, and a watchdog that replaces it when it stands still while jobs wait. */
async function startConsumer(bullmq: BullMq, parts: ConsumerParts): Promise<{ stop(): Promise<void> }> {
  const { process, consumeOptions, theQueue } = parts;
  const { concurrency, notify } = consumeOptions;
  let taken = 0;
  let running = 0;
  let stopped = false;
  let worker = await start();
  let lastTaken = -1;
  let checking = false;

  function tell(error: unknown): void {
    if (!isLostLock(error)) notify(inboxError("take", error));
  }

  /** Until the worker is closed. BullMQ's own check would rest for 5 s more after one that Redis refused. */
  async function checkStalls(made: BullWorker): Promise<void> {
    if (made.closing !== undefined) return;
    await recoverStalled(made).catch((error: unknown) => made.closing ?? tell(error));
    setTimeout(checkStalls, parts.stallCheckMs, made).unref();
  }

  async function start(): Promise<BullWorker> {
    const client = await parts.workerConnection();
    const made = new bullmq.Worker(
      NAME,
      async (bullJob: BullJob, token?: string) => {
        taken++;
        running++;
        try {
          const job = parseJobId(bullJob.id ?? "");
          const disposition = job === null ? "finished" : await process(job);
          if (disposition === "finished") return;
          await bullJob.moveToDelayed(Date.now() + Math.ceil(disposition.againInMs), token);
        } finally {
          running--;
        }
        throw new bullmq.DelayedError();
      },
      { ...parts.workerOptions(client), concurrency, skipStalledCheck: true },
    );
    made.on("error", tell);
    made.once("closed", () => client.disconnect());
    void checkStalls(made);
    return made;
  }

  const watchdog = setInterval(() => {
    if (checking || stopped) return;
    checking = true;
    void check().finally(() => {
      checking = false;
    });
  }, parts.stallCheckMs);
  watchdog.unref();

  async function check(): Promise<void> {
    const before = lastTaken;
    lastTaken = taken;
    if (taken !== before || running >= concurrency) return;
    try {
      const { waiting = 0 } = await (await theQueue()).getJobCounts("waiting");
      if (waiting === 0 || taken !== before || stopped) return;
      const old = worker;
      worker = await start();
      notify({
        type: "worker-replaced",
        why: `${waiting} jobs wait and none was taken for ${parts.stallCheckMs} ms`,
      });
      await old.close(running === 0);
    } catch {
      // Out of reach: the next check will tell.
    }
  }

  return {
    async stop() {
      stopped = true;
      clearInterval(watchdog);
      await worker.close();
    },
  };
}

let loading: Promise<BullMq> | null = null;

/** BullMQ is an optional peer: only this inbox needs it. */
function loadBullMq(): Promise<BullMq> {
  loading ??= import("bullmq").catch((cause: unknown) => {
    loading = null;
    throw new PayhooksError(
      "ERR_PEER_MISSING",
      "redisInbox needs the package bullmq, which is not installed.",
      {
        fix: "Install it: npm install bullmq@^6.3.4",
        cause,
      },
    );
  });
  return loading;
}
