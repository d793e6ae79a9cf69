/** The main job: a receiver on Express, and the sandbox, which sends it everything that can happen. */

import type { AddressInfo } from "node:net";
import { payhooksConsole } from "@payhooks/console/express";
import { createReceiver, memoryInbox, type Notice } from "@payhooks/core";
import { connectEvent, signConnectWebhook } from "@payhooks/core/testing";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";
import { showCrash } from "./crash.ts";
import { printFrame, printLine, printSummary, type Result } from "./report.ts";
import {
  createServiceKeys,
  type Outcome,
  type Service,
  type Step,
  scenario,
  startService,
} from "./service.ts";

if (process.argv.includes("--crash")) process.exit(await showCrash());

const once = process.argv.includes("--once");
const keys = createServiceKeys();

const receiver = createReceiver({
  payments: { publicKey: keys.publicKey },
  connect: { secret: keys.webhookSecret },
  inbox: memoryInbox(),
  logger: { info: () => {}, warn: () => {}, error: (message, facts) => console.error(message, facts) },
});

/** The work of the handlers and of the inbox since the last delivery. */
let seen: { ran: string[]; held?: string; known?: "duplicate" | "stale" } = { ran: [] };
const ran = (name: string): void => void seen.ran.push(name);

receiver.onDeposit({
  PENDING: () => ran("deposit.PENDING"),
  SUCCESS: () => ran("deposit.SUCCESS"),
  FAILED: () => ran("deposit.FAILED"),
});
receiver.onWithdrawal({
  SUCCESS: () => ran("withdrawal.SUCCESS"),
  FAILED: () => ran("withdrawal.FAILED"),
});
receiver.onConnectedAccountApproved(() => ran("connected_account.approved"));
receiver.onSettlementApproved(() => ran("settlement.approved"));
receiver.ignore("connected_account.declined").ignore("settlement.declined");
receiver.observe((notice: Notice) => {
  if (notice.type === "held") seen.held = notice.reason;
  if (notice.type === "duplicate" || notice.type === "stale") seen.known = notice.type;
});

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
app.use("/webhooks/connect", connectWebhooks(receiver));
// Everybody on this machine is let in. Nobody else can connect, and without allowedHosts the console answers under this machine's
// names only. Your own server asks who it is.
app.use(
  "/console",
  payhooksConsole(receiver, {
    authorize: () => ({ by: "you", can: ["view", "replay", "discard"] }),
    redact: ["userId"],
  }),
);

const portOf = (variable: string | undefined, usual: number): number =>
  once ? 0 : Number(variable ?? usual);
const wanted = portOf(process.env.PORT, 3000);
const server = app.listen(wanted, "127.0.0.1", (error?: Error) => {
  if (error === undefined) return void main();
  console.error(`Cannot listen on port ${wanted}: ${error.message}. Set PORT to a free one.`);
  process.exitCode = 1;
});

let service: Service | undefined;
async function main(): Promise<void> {
  const { port } = server.address() as AddressInfo;
  const base = `http://127.0.0.1:${port}`;
  try {
    service = await startService(base, keys, portOf(process.env.SANDBOX_PORT, 4000));
  } catch (error) {
    console.error(`${(error as Error).message} Set SANDBOX_PORT to a free one.`);
    process.exitCode = 1;
    return stop();
  }
  printFrame(base, service.sandbox.url, once ? null : curlCommand(base));
  const results: Result[] = [];
  for (const step of scenario()) {
    const result = { step, actual: await perform(step, service) };
    printLine(result);
    results.push(result);
  }
  const ok = printSummary(results, await heldEntries());
  process.exitCode = ok ? 0 : 1;
  if (once) await stop();
  else
    console.log(
      `\nListening. Send more from ${service.sandbox.url}/, and see what became of it at ${base}/console. Ctrl-C finishes what runs and stops.`,
    );
}

async function perform(step: Step, to: Service): Promise<Outcome> {
  seen = { ran: [] };
  const status = await step.send(to);
  await everythingRan();
  return { status, ...seen };
}

/** Handlers run after the answer: wait until none waits or runs. */
async function everythingRan(): Promise<void> {
  for (;;) {
    const { waiting, retrying, running } = await receiver.health();
    await new Promise((resolve) => setImmediate(resolve));
    if (waiting === 0 && retrying === 0 && running === 0) return;
  }
}

async function heldEntries(): Promise<readonly string[]> {
  const { events } = await receiver.events.list({ state: "held" });
  return events.map(
    ({ reason, event, id, detail }) =>
      `${(reason ?? "").padEnd(10)} ${(event || "?").padEnd(8)} ${id.slice(0, 36)}${detail ? `  ${detail}` : ""}`,
  );
}

/** A webhook to send by hand, signed with this run's secret. */
function curlCommand(base: string): string {
  const { headers, rawBody } = signConnectWebhook(connectEvent("settlement.approved"), keys.webhookSecret);
  const given = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`);
  return `curl -i ${base}/webhooks/connect ${given.join(" ")} -d '${rawBody.toString()}'`;
}

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await service?.sandbox.close();
  server.close();
  const held = (await heldEntries()).length;
  const { unfinished } = await receiver.close({ graceMs: 10_000 });
  server.closeAllConnections();
  if (once) return;
  // Held events live in this process's memory and go with it, so close counts them too.
  const lost = unfinished - held;
  console.log(lost === 0 ? "Everything that was accepted is finished." : `${lost} events were not finished.`);
}
process.on("SIGINT", stop);
process.on("SIGTERM", stop);
