/**
 * Inboxes with one mistake each, as they are found in hand-written receivers. The suite must catch every one of them:
 * that is what says that it would catch ours.
 */
import { type Job, parseJobId } from "@payhooks/core/inbox";
import { type Job as BullJob, DelayedError, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { ChildConfig } from "./child-config.ts";
import type { Parts } from "./inbox.ts";

/** How much later a mistaken inbox does what it should have done before its answer. */
const TOO_LATE_MS = 50;

export function withVariant(parts: Parts, config: ChildConfig): Parts {
  const { store, queue } = parts;
  const { variant } = config;
  if (variant === undefined) return parts;
  switch (variant) {
    case "default-stalled-count":
      return { ...parts, queue: { ...queue, consume: consumeWithDefaults(config) } };
    case "acknowledge-before-add":
      return {
        ...parts,
        queue: {
          ...queue,
          async add(job, options) {
            setTimeout(() => void queue.add(job, options).catch(() => {}), TOO_LATE_MS);
          },
        },
      };
    case "set-nx": {
      const redis = connect(config);
      return {
        ...parts,
        store: {
          ...store,
          async accept(event, options) {
            if ((await redis.set(`seen:${event.key}`, 1, "NX")) === "OK") return store.accept(event, options);
            const job: Job = { eventId: event.key + event.slot, replay: 0 };
            return {
              outcome: "duplicate",
              job,
              pending: false,
              reason: null,
              detail: null,
              previousAmount: null,
            };
          },
        },
      };
    }
    case "flag-before-barrier":
      return {
        ...parts,
        queue: {
          ...queue,
          async add(job, options) {
            await queue.add(job, options);
            await store.markQueued(job);
          },
        },
      };
    case "conflict-forgotten":
      return {
        ...parts,
        store: {
          ...store,
          async accept(event, options) {
            const accepted = await store.accept(event, options);
            const forgotten = accepted.outcome === "resume" && accepted.reason === "conflict";
            return forgotten ? { ...accepted, outcome: "duplicate", pending: false } : accepted;
          },
        },
      };
  }
}

function connect({ inbox }: ChildConfig): Redis {
  if (inbox.kind !== "redis" || typeof inbox.target !== "string")
    throw new Error("this variant is made for a URL");
  return new Redis(inbox.target, { maxRetriesPerRequest: null });
}

/** A BullMQ worker as its documentation shows it: a job whose worker dies twice is failed for good. */
function consumeWithDefaults(config: ChildConfig): Parts["queue"]["consume"] {
  return async (process, { concurrency }) => {
    const worker = new Worker(
      "inbox",
      async (bullJob: BullJob, token?: string) => {
        const job = parseJobId(bullJob.id ?? "");
        const disposition = job === null ? "finished" : await process(job);
        if (disposition === "finished") return;
        await bullJob.moveToDelayed(Date.now() + disposition.againInMs, token);
        throw new DelayedError();
      },
      {
        connection: connect(config),
        prefix: "{payhooks}",
        lockDuration: config.leaseMs,
        stalledInterval: config.stallCheckMs,
        concurrency,
      },
    );
    worker.on("error", () => {});
    return { stop: () => worker.close() };
  };
}
