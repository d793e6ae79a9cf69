/**
 * The server process of the bench: every variant of every framework in one process, since two processes of the same
 * program differ by more than what is measured. It runs as plain JavaScript on the built packages.
 */
import { statSync } from "node:fs";
import type { Server } from "node:http";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import type { Answers, Counters, FrameworkName, Order, Reply, Surroundings, Variant } from "../protocol.ts";
import { benchEvent } from "../redis-event.ts";
import { onExpress } from "./express.ts";
import { onFastify } from "./fastify.ts";
import { onFetch } from "./fetch.ts";
import type { Framework } from "./framework.ts";
import { PATHS, portOf } from "./framework.ts";
import { onHono } from "./hono.ts";
import { inlineCheck } from "./inline.ts";
import { bareOnNode } from "./node.ts";
import { mountPeer } from "./peers.ts";
import { type Fresh, freshReceiver } from "./receiver.ts";

const FRAMEWORKS: Readonly<Record<Exclude<FrameworkName, "node">, Framework>> = {
  express: onExpress,
  fastify: onFastify,
  hono: onHono,
  fetch: onFetch,
};

const surroundings = JSON.parse(process.argv[2] ?? "") as Surroundings;
let handled = 0;
let handlerMs = 0;
const handle = async (): Promise<void> => {
  if (handlerMs > 0) await pause(handlerMs);
  handled++;
};
/** Wakes every 10 ms: nothing beside the requests. */
const lag = monitorEventLoopDelay({ resolution: 10 });
lag.enable();

let server: Server | null = null;
let fresh: Fresh | null = null;

async function close(): Promise<void> {
  server?.closeAllConnections();
  await new Promise<unknown>((resolve) => (server === null ? resolve(null) : server.close(resolve)));
  await fresh?.end();
  server = null;
  fresh = null;
}

async function open(variant: Variant): Promise<Answers["open"]> {
  await close();
  handled = 0;
  handlerMs = variant.handlerMs ?? 0;
  const path = PATHS[variant.scheme];
  server = await serve(variant, path);
  // Nobody pays for what another variant has left behind.
  globalThis.gc?.();
  return { port: portOf(server), path };
}

async function serve({ framework, scheme, mode, peer, maxRecords }: Variant, path: string): Promise<Server> {
  if (mode === "peer") {
    const { secret, peers: module } = surroundings;
    if (peer === undefined || module === null || (framework !== "node" && framework !== "express")) {
      throw new Error(`no ${peer} on ${framework}`);
    }
    return mountPeer({ peer, framework, path, secret, module, handle });
  }
  if (framework === "node") return bareOnNode(path);
  const on = FRAMEWORKS[framework];
  if (mode === "bare") return on.byHand(path, null);
  if (mode === "inline" || mode === "pem") {
    return on.byHand(path, inlineCheck(mode, scheme, surroundings, handle));
  }
  fresh = await freshReceiver(mode, surroundings, handle, maxRecords);
  return on.ours(path, scheme, fresh.receiver);
}

/** Waits until what was accepted is handled and its record finished, then reads the counters. */
async function read(expected: number, kept: boolean): Promise<Counters> {
  while (handled < expected) await pause(1);
  while (expected > 0 && fresh !== null) {
    const { waiting, running } = await fresh.receiver.health();
    if (waiting === 0 && running === 0) break;
    await pause(waiting === null ? 20 : 1);
    // Other inboxes do not count what waits: the records of the last few are being written.
    if (waiting === null) break;
  }
  const { user, system } = process.cpuUsage();
  const lagMs = lag.max / 1e6;
  lag.reset();
  return { cpuUs: user + system, handled, lagMs, keptBytes: kept ? keptBytes() : null };
}

function keptBytes(): number {
  if (fresh?.file != null) return statSync(fresh.file).size;
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

async function fill(records: number): Promise<null> {
  if (fresh === null) throw new Error("there is no inbox to fill");
  const before = handled;
  for (let done = 0; done < records; ) {
    const events = Array.from({ length: Math.min(500, records - done) }, benchEvent);
    await Promise.all(events.map((event) => fresh?.inbox.accept(event)));
    done += events.length;
    while (handled < before + done) await pause(1);
  }
  return null;
}

async function obey(order: Order): Promise<unknown> {
  switch (order.do) {
    case "open":
      return open(order.variant);
    case "read":
      return read(order.handled, order.kept === true);
    case "fill":
      return fill(order.records);
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
// The bench was ended in mid-work.
process.on("disconnect", () => process.exit());
answer({ ok: process.versions.node });
