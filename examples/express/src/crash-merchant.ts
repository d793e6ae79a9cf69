/** The process that `crash.ts` kills: a receiver whose inbox is a file. It tells its parent what it does. */
import type { AddressInfo } from "node:net";
import { createReceiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { paymentCallbacks } from "@payhooks/express";
import express from "express";

/** A message from this process to its parent. */
export type Said =
  | { readonly what: "listens"; readonly port: number }
  | { readonly what: "begins" | "ends"; readonly effectId: string; readonly attempt: number }
  | { readonly what: "stopped"; readonly unfinished: number };

const say = (said: Said): void => void process.send?.(said);

const receiver = createReceiver({
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  // A short lease, so that the next process need not wait half a minute for what this one had begun.
  inbox: sqliteInbox(process.env.PAYHOOKS_FILE, { leaseMs: 1_000 }),
  logger: { info: () => {}, warn: () => {}, error: (message, facts) => console.error(message, facts) },
});

receiver.onDeposit(async (_deposit, { effectId, attempt }) => {
  say({ what: "begins", effectId, attempt });
  // The first process never gets to the end: it is killed while it waits for this.
  if (process.env.HANDLER === "slow") await new Promise((resolve) => setTimeout(resolve, 60_000));
  say({ what: "ends", effectId, attempt });
});
receiver.ignore("WITHDRAWAL");

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
const server = app.listen(0, "127.0.0.1", (error?: Error) => {
  if (error !== undefined) throw error;
  say({ what: "listens", port: (server.address() as AddressInfo).port });
});

process.once("message", async () => {
  server.close();
  server.closeAllConnections();
  const { unfinished } = await receiver.close({ graceMs: 5_000 });
  say({ what: "stopped", unfinished });
  process.disconnect();
});
process.once("disconnect", () => setImmediate(() => process.exit()));
