import { createReceiver, type Receiver } from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";

/** The receiver of every process: all share one Redis, and each says where its handlers run. */
export function createSharedReceiver(run: "background" | "elsewhere"): Receiver {
  return createReceiver({
    payments: { publicKey: process.env.PAY_PUBLIC_KEY },
    // With replicas of that Redis, `replicas: 1` makes an acknowledged event survive the primary's loss.
    inbox: redisInbox(process.env.REDIS_URL),
    run,
  });
}
