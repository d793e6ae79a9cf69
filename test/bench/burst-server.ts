/**
 * What a burst meets, in a process of its own: the Express adapter on an inbox, or Express alone. It tells how long the turns of
 * its event loop are, by the clock and in processor time.
 */
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver } from "@payhooks/core";
import { paymentCallbacks } from "@payhooks/express";
import express from "express";
import { silent } from "../support/silent.ts";
import { type InboxName, openInbox } from "./inboxes.ts";

/** The turns of the event loop since it was asked for the last time. */
export interface Turns {
  readonly turns: number;
  readonly longestMs: number;
  readonly longestCpuMs: number;
  readonly cpuMs: number;
}

const [, , kind = "", url = ""] = process.argv;
const folder = mkdtempSync(join(tmpdir(), "payhooks-burst-"));
process.once("exit", () => rmSync(folder, { recursive: true }));
process.once("disconnect", () => process.exit());

const app = express();
if (kind === "Express alone") {
  app.post("/pay", express.raw({ type: () => true }), (_request, response) => {
    response.json({ received: true });
  });
} else {
  const { inbox } = await openInbox(kind as InboxName, { redisUrl: url, postgresUrl: url, folder });
  const payments = { publicKey: process.env.PAY_PUBLIC_KEY };
  const receiver = createReceiver({ payments, inbox, logger: silent });
  receiver.onDeposit(() => {}).ignore("WITHDRAWAL");
  app.use("/pay", paymentCallbacks(receiver));
  await receiver.start();
}

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};
let found = { turns: 0, longestMs: 0, longestCpuMs: 0, from: cpuMs() };
let last = { ms: performance.now(), cpuMs: cpuMs() };
/** Once in each turn. Keeps the event loop from sleeping, so that a turn is work and nothing else. */
function watch(): void {
  const now = { ms: performance.now(), cpuMs: cpuMs() };
  found.turns++;
  found.longestMs = Math.max(found.longestMs, now.ms - last.ms);
  found.longestCpuMs = Math.max(found.longestCpuMs, now.cpuMs - last.cpuMs);
  last = now;
  setImmediate(watch);
}
process.on("message", () => {
  const { from, ...turns } = found;
  process.send?.({ ...turns, cpuMs: cpuMs() - from } satisfies Turns);
  found = { turns: 0, longestMs: 0, longestCpuMs: 0, from: cpuMs() };
});
const server = app.listen({ port: 0, host: "127.0.0.1", backlog: 16_384 }, () => {
  watch();
  process.send?.((server.address() as AddressInfo).port);
});
