/** A process under test: Express, a receiver, and handlers that write what they do into an append-only log. */
import { openSync, writeSync } from "node:fs";
import { type ConnectEvent, createReceiver, type HandlerContext, Reject } from "@payhooks/core";
import { sendAlerts, slackChannel } from "@payhooks/core/alerts";
import { eachEvent } from "@payhooks/core/events";
import { createInbox } from "@payhooks/core/inbox";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";
import { silent } from "../../support/silent.ts";
import {
  type BulkConfig,
  type ChildConfig,
  CONFIG_VARIABLE,
  type FromChild,
  GRACE_MS,
  type ToChild,
} from "./child-config.ts";
import { fastClock } from "./fast-clock.ts";
import { storeOf } from "./inbox.ts";
import { withKill } from "./kill-points.ts";
import { watchLag } from "./lag.ts";
import { openLedger } from "./ledger.ts";
import { type LogLine, logLine } from "./log.ts";
import { seededRandom, sharedNow } from "./scope.ts";
import { stoppedInTake } from "./stopped-in-take.ts";
import { variantOf } from "./variants.ts";

const config = JSON.parse(process.env[CONFIG_VARIABLE] ?? "") as ChildConfig;
const { leaseMs, pollMs } = config;
const log = openSync(config.log, "a");
const random = seededRandom(config.seed ^ process.pid);
const { pid } = process;

function write(what: LogLine["what"], key: string, detail: string, more: string): void {
  writeSync(log, logLine({ what, key, detail, more, pid, at: sharedNow() }));
}

watchLag(({ from, to }) => write("lag", "-", "", String(to - from)));

const variant = variantOf(config);
const plain = storeOf(config.inbox, config);
const store = withKill(
  variant.store(config.stopsInTake === true ? stoppedInTake(plain) : plain),
  config.killAt,
  (point, key) => write("killed", key, point, ""),
);
const ledger = config.ledger === undefined ? null : openLedger(config.ledger);
const receiver = createReceiver({
  ...(ledger === null ? {} : { effects: ledger.effects }),
  payments: {
    publicKey: config.publicKey,
    keep: config.keeps === true ? { signedTextMs: 86_400_000 } : undefined,
  },
  ...(config.connectSecret === undefined ? {} : { connect: { secret: config.connectSecret } }),
  inbox: variant.inbox(createInbox(store, { leaseMs, pollMs }), store),
  run: config.run,
  concurrency: config.concurrency,
  logger: silent,
});

const SLEEPS: Readonly<Record<string, number>> = { slow: 500, long: 3_000 };

async function handle(
  event: { readonly payTxnId: string; readonly status: string; readonly referenceId: string },
  { effectId, attempt }: { readonly effectId: string; readonly attempt: number },
): Promise<void> {
  const key = `${event.payTxnId} ${event.status}`;
  write("started", key, effectId, String(attempt));
  const manner = event.referenceId.split("-")[0];
  if (manner === "poison") process.kill(pid, "SIGKILL");
  if (manner === "hangs") await new Promise(() => {});
  await sleep(SLEEPS[manner ?? ""] ?? random() * config.handlerMs);
  if (manner === "rejects") throw new Reject("not wanted");
  if (manner === "throws" && attempt === 1) throw new Error("the first attempt fails");
  if (manner === "calm" && random() < config.throwRate) throw new Error("now and then it fails");
  write("completed", key, effectId, String(attempt));
}

/** Books, and dwells on both sides of the commit, so that deaths fall there. */
async function book(
  event: { readonly payTxnId: string; readonly event: string; readonly status: string } & {
    readonly amount: string;
    readonly referenceId: string;
  },
  ctx: HandlerContext,
): Promise<void> {
  const { payTxnId, status } = event;
  const key = `${payTxnId} ${status}`;
  write("started", key, ctx.effectId, String(ctx.attempt));
  const amount = event.event === "WITHDRAWAL" ? `-${event.amount}` : event.amount;
  const isLate = event.referenceId.startsWith("hangs") && ctx.attempt === 1;
  const dwell = (): Promise<void> => sleep(isLate ? config.timeoutMs * 2 : random() * config.handlerMs);
  await ledger?.book({ payTxnId, amount }, ctx, dwell);
  await sleep(random() * config.handlerMs);
  write("completed", key, ctx.effectId, String(ctx.attempt));
}

/** Sets the state of a connected account from now on. */
async function hear(
  { idempotency_key: key }: ConnectEvent,
  { effectId, attempt }: { readonly effectId: string; readonly attempt: number },
): Promise<void> {
  write("started", key, effectId, String(attempt));
  await sleep(random() * config.handlerMs);
  if (random() < config.throwRate) throw new Error("now and then it fails");
  write("completed", key, effectId, String(attempt));
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const options = {
  maxAttempts: config.maxAttempts,
  timeoutMs: config.timeoutMs,
  backoffMs: () => config.backoffMs ?? 100,
  ...(config.onCrash === undefined ? {} : { onCrash: config.onCrash }),
};
if (ledger === null) receiver.onDeposit({ PENDING: handle, SUCCESS: handle, FAILED: handle }, options);
else receiver.onDeposit(book, options).onWithdrawal(book, options);
if (config.twoHandlers === true) receiver.onDeposit(() => {}, { name: "last" });
if (ledger === null) receiver.ignore("WITHDRAWAL");
if (config.connectSecret !== undefined) {
  receiver.onConnectedAccountApproved(hear, options).onConnectedAccountDeclined(hear, options);
  receiver.ignore("settlement.approved").ignore("settlement.declined");
}
receiver.onHeld(({ id, status, reason }) => write("on-held", `${id} ${status}`, reason, ""));
receiver.observe((notice) => {
  switch (notice.type) {
    case "double-risk":
      return write("notice", `${notice.id} ${notice.status}`, notice.type, notice.why);
    case "given-up":
    case "held":
      return write("notice", `${notice.id} ${notice.status}`, notice.type, notice.reason);
    case "record-missing":
      return write("notice", notice.eventId, notice.type, "");
    case "inbox-error":
      return write("notice", "-", notice.type, `${notice.during}: ${notice.error.replace(/\s+/g, " ")}`);
    case "refused":
      return write("notice", "-", notice.type, `${notice.code}: ${notice.why.replace(/\s+/g, " ")}`);
  }
});

const alerts =
  config.alerts === undefined
    ? null
    : sendAlerts(receiver, {
        to: [slackChannel({ url: config.alerts.url })],
        from: "the test",
        clock: fastClock(config.alerts),
        onProblem: (problem) => write("notice", "-", "alerts", problem.replace(/\s+/g, " ")),
      });

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
if (config.connectSecret !== undefined) app.use("/webhooks/connect", connectWebhooks(receiver));
const server = app.listen(config.port, "127.0.0.1", (error?: Error) => {
  if (error !== undefined) throw error;
  tellParent({ type: "listening" });
});
// Longer than a sender's connection is ever idle: one that is closed while a request is on its way has no answer.
server.keepAliveTimeout = 120_000;

function tellParent(message: FromChild): void {
  process.send?.(message);
}

process.on("message", async ({ type }: ToChild) => {
  if (type !== "work") return;
  const { ran, failed } = await receiver.work({ deadlineMs: 5_000 });
  tellParent({ type: "worked", ran, failed });
});
// As the inbox does it once a minute, but often enough to be killed in it.
if (config.killDuring?.what === "pruning") {
  setInterval(() => void receiver.work({ deadlineMs: 1 }).catch(() => {}), 50);
}
const { decision } = config;
if (decision !== undefined) setInterval(() => void decideAll(decision).catch(() => {}), 100);

async function decideAll(what: "replay" | "discard"): Promise<void> {
  for await (const { id, status, eventId } of eachEvent(receiver.events, { state: "held" })) {
    if (what === "discard") write("discards", `${id} ${status}`, eventId, "");
    await receiver.events[what](eventId, { by: "the test", note: "it is held" });
  }
}
const { bulk } = config;
if (bulk !== undefined) void replayAll(bulk);

async function replayAll({ until, ...options }: BulkConfig): Promise<void> {
  const { decided, alreadyDecided, complete } = await receiver.events.replay(
    { state: "finished", until },
    {
      ...options,
      by: "the test",
      note: "all once more",
      progress: ({ eventId, outcome }) => write("replays", eventId, outcome, ""),
    },
  );
  if (complete) write("replayed", "-", String(decided), String(alreadyDecided));
}

// A test that died must not leave a process behind.
const die = (): void => process.exit(1);
process.once("disconnect", die);
// As the README has it. Nothing ends the process: it has to end by itself.
process.once("SIGTERM", async () => {
  server.close();
  await alerts?.stop();
  const { unfinished } = await receiver.close({ graceMs: GRACE_MS });
  server.closeAllConnections();
  await ledger?.end();
  process.exitCode = unfinished === 0 ? 0 : 3;
  process.off("disconnect", die);
  process.disconnect();
});
