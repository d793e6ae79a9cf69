/**
 * What is written by hand so that no event is lost or repeated: verify, `SET NX` against copies, a queue for the rest.
 * (A process that dies between the two has lost its event: Redis knows it, so that the next copy is not queued either.)
 */
import { once } from "node:events";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { verifying } from "./route.ts";
import type { OpenShop } from "./shop.ts";
import { CONCURRENCY } from "./ways.ts";

/** As long as ours remembers an event. */
const KEPT_SECONDS = 8 * 86_400;

export const openQueue: OpenShop = async ({ publicKey, url }, handle) => {
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  const queue = new Queue("callbacks", {
    connection,
    defaultJobOptions: {
      attempts: 5,
      backoff: { type: "exponential", delay: 1_000 },
      removeOnComplete: true,
    },
  });
  let begun = 0;
  let completed = 0;
  const worker = new Worker(
    "callbacks",
    async () => {
      begun++;
      await handle();
    },
    { connection, concurrency: CONCURRENCY },
  );
  worker.on("completed", () => completed++);

  return {
    server: await verifying(publicKey, async ({ id, fields }) => {
      if ((await connection.set(`callback:${id}`, "1", "EX", KEPT_SECONDS, "NX")) === "OK") {
        await queue.add(String(fields.event), fields);
      }
    }),
    async recorded() {
      while (completed < begun) await once(worker, "completed");
    },
  };
};
