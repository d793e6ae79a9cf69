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
import { leastCheck } from "./least.ts";
import { onNext } from "./next.ts";
import { bareOnNode } from "./node.ts";
import { mountPeer } from "./peers.ts";
import { SamplingProfiler } from "./profile.ts";
import { type Fresh, freshReceiver } from "./receiver.ts";
import { sourceOnExpress } from "./source.ts";

const surroundings = JSON.parse(process.argv[2] ?? "") as Surroundings;

const FRAMEWORKS: Readonly<Record<Exclude<FrameworkName, "node">, Framework>> = {
  express: onExpress,
  fastify: onFastify,
  hono: onHono,
  next: onNext(surroundings.nextApp),
  fetch: onFetch,
};

let handled = 0;
let handlerMs = 0;
const handle = async (): Promise<void> => {
  if (handlerMs > 0) await pause(handlerMs);
  handled++;
};
/** Wakes every 10 ms: nothing beside the requests. */
const lag = monitorEventLoopDelay({ resolution: 10 });
lag.enable();

/** A server that listens, and the receiver behind it, if it is ours. */
interface Opened {
  readonly server: Server;
  readonly fresh: Fresh | null;
}
let opened: Opened[] = [];
const profiler = new SamplingProfiler();

async function close(): Promise<void> {
  for (const { server, fresh } of opened) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await fresh?.end();
  }
  opened = [];
  handled = 0;
}

async function open(variant: Variant, beside: boolean): Promise<Answers["open"]> {
  if (!beside) await close();
  handlerMs = variant.handlerMs ?? 0;
  const path = PATHS[variant.scheme];
  const server = await serve(variant, path);
  // Its turn comes again after all others have had theirs.
  server.server.keepAliveTimeout = 120_000;
  opened.push(server);
  return { port: portOf(server.server), path, id: opened.length - 1, file: server.fresh?.file ?? null };
}

async function serve({ framework, scheme, mode, peer, maxRecords }: Variant, path: string): Promise<Opened> {
  const alone = async (server: Promise<Server>): Promise<Opened> => ({ server: await server, fresh: null });
  if (mode === "peer") {
    const { secret, peers: module } = surroundings;
    if (peer === undefined || module === null || (framework !== "node" && framework !== "express")) {
      throw new Error(`no ${peer} on ${framework}`);
    }
    return alone(mountPeer({ peer, framework, path, secret, module, handle }));
  }
  if (framework === "node") return alone(bareOnNode(path));
  const on = FRAMEWORKS[framework];
  if (mode === "bare") return alone(on.byHand(path, null));
  if (mode === "least") return alone(on.byHand(path, leastCheck(scheme, surroundings, handle)));
  if (mode === "inline" || mode === "pem") {
    return alone(on.byHand(path, inlineCheck(mode, scheme, surroundings, handle)));
  }
  if (mode === "source") {
    if (peer === undefined) throw new Error("a source is that of a sender");
    return sourceOnExpress(path, peer, surroundings.secret, handle);
  }
  const fresh = await freshReceiver(mode, surroundings, handle, maxRecords);
  return { server: await on.ours(path, scheme, fresh.receiver), fresh };
}

/** Waits until what was accepted is handled and its record finished, then reads the counters. */
async function read(expected: number, kept: boolean, fresh: Fresh | null): Promise<Counters> {
  while (handled < expected) await pause(1);
  while (expected > 0 && fresh !== null) {
    const { waiting, retrying, running } = await fresh.receiver.health();
    if (waiting === 0 && retrying === 0 && running === 0) break;
    await pause(waiting === null ? 20 : 1);
    // Other inboxes do not count what waits: the records of the last few are being written.
    if (waiting === null) break;
  }
  const { user, system } = process.cpuUsage();
  const lagMs = lag.max / 1e6;
  lag.reset();
  return { cpuUs: user + system, handled, lagMs, keptBytes: kept ? keptBytes(fresh) : null };
}

function keptBytes(fresh: Fresh | null): number {
  if (fresh?.file != null) return statSync(fresh.file).size;
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

async function fill(records: number): Promise<null> {
  const fresh = opened.at(-1)?.fresh ?? null;
  if (fresh === null) throw new Error("there is no inbox to fill");
  const before = handled;
  for (let done = 0; done < records; ) {
    const events = Array.from({ length: Math.min(500, records - done) }, benchEvent);
    await Promise.all(events.map((event) => fresh.inbox.accept(event)));
    done += events.length;
    while (handled < before + done) await pause(1);
  }
  return null;
}

async function obey(order: Order): Promise<unknown> {
  switch (order.do) {
    case "open":
      return open(order.variant, order.beside === true);
    case "read":
      return read(order.handled, order.kept === true, opened.at(order.of ?? -1)?.fresh ?? null);
    case "work-off":
      await opened[order.of]?.fresh?.receiver.work({ deadlineMs: 60_000, limit: Number.POSITIVE_INFINITY });
      return null;
    case "fill":
      return fill(order.records);
    case "profile":
      await profiler.start();
      return null;
    case "profiled":
      return profiler.stop();
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
