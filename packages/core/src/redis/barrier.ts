import type { Cluster, Redis } from "ioredis";
import { PayhooksError } from "../errors.ts";

/**
 * A barrier that resolves once `replicas` replicas have everything that was written before it was asked for. All who
 * ask while one round is under way share the next: one SET and one WAIT for many events.
 */
export function replicaBarrier(
  connection: () => Promise<Redis | Cluster>,
  {
    prefix,
    replicas,
    timeoutMs,
  }: { readonly prefix: string; readonly replicas: number; readonly timeoutMs: number },
): () => Promise<void> {
  let opened: Promise<Redis | Cluster> | null = null;
  let current: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  async function round(): Promise<void> {
    opened ??= connection().catch((error: unknown) => {
      opened = null;
      throw error;
    });
    const redis = await opened;
    // WAIT looks at what this connection wrote last, and replication is one stream: this write is behind the others.
    const [, reached] = await Promise.all([
      redis.set(`{${prefix}}:barrier`, Date.now()),
      redis.wait(replicas, timeoutMs),
    ]);
    if (reached >= replicas) return;
    throw new PayhooksError(
      "ERR_INBOX_UNAVAILABLE",
      `${reached} of ${replicas} replicas have the event after ${timeoutMs} ms.`,
      {
        fix: "Are the replicas connected? Until they are, deliveries are answered 503 and retried by the sender.",
      },
    );
  }

  function begin(): Promise<void> {
    const started = round().finally(() => {
      if (current === started) current = null;
    });
    current = started;
    return started;
  }

  return () => {
    if (current === null) return begin();
    next ??= current
      .catch(() => {})
      .then(() => {
        next = null;
        return begin();
      });
    return next;
  };
}
