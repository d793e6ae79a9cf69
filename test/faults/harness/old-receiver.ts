import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { OldAnswer } from "@payhooks/core/shadow";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Scope } from "./scope.ts";

/** The fields of a callback that a job has. */
export interface Job {
  readonly event: string;
  readonly payTxnId: string;
  readonly status: string;
  readonly amount: string;
}

const KEPT_SECONDS = 8 * 86_400;

/**
 * A receiver as teams write it by hand: a signature check, `SET NX` against copies, and a BullMQ queue whose worker handles the events after they
 * were acknowledged. Each of its mistakes is one that such receivers have.
 */
export class OldReceiver {
  readonly queue: Queue<Job>;
  readonly #redis: Redis;
  readonly #worker: Worker<Job>;
  readonly #key: KeyObject;
  /** The payments after whose `SET` the process dies once, before their jobs are in the queue. */
  readonly diesAfter: Set<string> = new Set<string>();

  private constructor(redisUrl: string, publicKey: string, handle: (job: Job) => Promise<void>) {
    const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
    // Its Redis ends with the test, sometimes before the last of its connections.
    const connections = [connection, connection.duplicate()] as const;
    for (const one of connections) one.on("error", () => {});
    this.#redis = connection;
    this.#key = createPublicKey(publicKey);
    this.queue = new Queue<Job>("callbacks", { connection, defaultJobOptions: { removeOnComplete: true } });
    this.queue.on("error", () => {});
    this.#worker = new Worker<Job>("callbacks", ({ data }) => handle(data), {
      connection: connections[1],
      concurrency: 4,
      autorun: false,
    });
    this.#worker.on("error", () => {});
  }

  static open(
    scope: Scope,
    redisUrl: string,
    publicKey: string,
    handle: (job: Job) => Promise<void>,
  ): OldReceiver {
    return scope.add(new OldReceiver(redisUrl, publicKey, handle), (old) => old.close());
  }

  /** Its workers begin. Until then, jobs wait. */
  work(): void {
    void this.#worker.run();
  }

  async receive(body: Buffer): Promise<OldAnswer> {
    const event = this.#verified(body);
    // It was never taught anything but deposits.
    if (event === null || event.event !== "DEPOSIT") return "refused";
    const { payTxnId, status } = event;
    const isNew = await this.#redis.set(`callback:${payTxnId}:${status}`, "1", "EX", KEPT_SECONDS, "NX");
    if (isNew !== "OK") return "duplicate";
    if (this.diesAfter.delete(payTxnId)) throw new Error("the process died between SET and add");
    if (status === "SUCCESS") await this.queue.add(event.event, event);
    return "accepted";
  }

  /** Null: not authentic. Callbacks from the time before signatures are believed, as somebody decided once. */
  #verified(body: Buffer): Job | null {
    const fields = JSON.parse(body.toString("utf8")) as Record<string, unknown>;
    if (fields.signature === "legacy") return fields as unknown as Job;
    const canonical = Object.keys(fields)
      .filter((name) => name !== "signature" && fields[name] !== null)
      .sort()
      .map((name) => `${name}=${fields[name]}`)
      .join("&");
    const signature = Buffer.from(String(fields.signature), "base64");
    return verify("sha256", Buffer.from(canonical), this.#key, signature) ? (fields as unknown as Job) : null;
  }

  /** How many jobs are left, retries and delayed ones included. */
  async left(): Promise<number> {
    const counts = await this.queue.getJobCounts("wait", "active", "delayed", "prioritized");
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  }

  async close(): Promise<void> {
    await this.#worker.close();
    await this.queue.close();
    this.#redis.disconnect();
  }
}
