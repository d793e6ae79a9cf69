/**
 * The server process of the bench: every variant of every framework in one process, since two processes of the same
 * program differ by more than what is measured. It runs as plain JavaScript on the built packages.
 */
import { statSync } from "node:fs";
import type { Server } from "node:http";
import type { Answers, Counters, FrameworkName, Order, Reply, Surroundings, Variant } from "../protocol.ts";
import { onExpress } from "./express.ts";
import { onFastify } from "./fastify.ts";
import { onFetch } from "./fetch.ts";
import type { Framework } from "./framework.ts";
import { PATHS, portOf } from "./framework.ts";
import { onHono } from "./hono.ts";
import { inlineCheck } from "./inline.ts";
import { type Fresh, freshReceiver } from "./receiver.ts";

const FRAMEWORKS: Readonly<Record<FrameworkName, Framework>> = {
  express: onExpress,
  fastify: onFastify,
  hono: onHono,
  fetch: onFetch,
};

const surroundings = JSON.parse(process.argv[2] ?? "") as Surroundings;
let handled = 0;
const handle = async (): Promise<void> => {
  handled++;
};

let server: Server | null = null;
let fresh: Fresh | null = null;

async function close(): Promise<void> {
  server?.closeAllConnections();
  await new Promise<unknown>((resolve) => (server === null ? resolve(null) : server.close(resolve)));
  await fresh?.end();
  server = null;
  fresh = null;
}

async function open({ framework, scheme, mode }: Variant): Promise<Answers["open"]> {
  await close();
  handled = 0;
  const path = PATHS[scheme];
  const on = FRAMEWORKS[framework];
  if (mode === "bare") server = await on.byHand(path, null);
  else if (mode === "inline" || mode === "pem") {
    server = await on.byHand(path, inlineCheck(mode, scheme, surroundings, handle));
  } else {
    fresh = await freshReceiver(mode, surroundings, handle);
    server = await on.ours(path, scheme, fresh.receiver);
  }
  // Nobody pays for what another variant has left behind.
  globalThis.gc?.();
  return { port: portOf(server), path };
}

/** Waits until what was accepted is handled and its record finished, then reads the counters. */
async function read(expected: number, kept: boolean): Promise<Counters> {
  while (handled < expected) await turn();
  while (expected > 0 && fresh !== null) {
    const { waiting, running } = await fresh.receiver.health();
    if (waiting === 0 && running === 0) break;
    await turn();
  }
  const { user, system } = process.cpuUsage();
  return { cpuUs: user + system, keptBytes: kept ? keptBytes() : null };
}

function keptBytes(): number {
  if (fresh?.file != null) return statSync(fresh.file).size;
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

async function obey(order: Order): Promise<unknown> {
  switch (order.do) {
    case "open":
      return open(order.variant);
    case "read":
      return read(order.handled, order.kept === true);
    case "end":
      await close();
      process.disconnect();
      return null;
  }
}

const answer = (reply: Reply): void => void process.send?.(reply);

process.on("message", (order: Order) => {
  obey(order).then(
    (ok) => process.connected && answer({ ok }),
    (error: unknown) =>
      answer({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
answer({ ok: process.versions.node });
