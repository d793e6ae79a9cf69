/** A merchant's process: one server, which receives payment callbacks in one way, and tells what each turn cost it. */
import { setTimeout as pause } from "node:timers/promises";
import { PATHS, portOf } from "../child/framework.ts";
import { openBoss } from "./boss.ts";
import { openCheck } from "./check.ts";
import { openGraphile } from "./graphile.ts";
import { openOurs } from "./ours.ts";
import { openQueue } from "./queue.ts";
import type { OpenShop } from "./shop.ts";
import { openTable } from "./table.ts";
import type { Message, Setup, Turn, Way } from "./ways.ts";

const SHOPS: Readonly<Record<Way, OpenShop>> = {
  check: openCheck,
  queue: openQueue,
  graphile: openGraphile,
  boss: openBoss,
  table: openTable,
  memory: openOurs("memory"),
  sqlite: openOurs("sqlite"),
  redis: openOurs("redis"),
  postgres: openOurs("postgres"),
  mysql: openOurs("mysql"),
};

/** After the last end: what a way has put off for later is part of what it costs. */
const AFTERWARDS_MS = 50;

let handlerMs = 0;
/** Calls of the handler that have not ended yet, or not begun. */
let left = 0;
let allEnded = (): void => {};

async function handle(): Promise<void> {
  if (handlerMs > 0) await pause(handlerMs);
  if (--left === 0) allEnded();
}

const setup = JSON.parse(process.argv[2] ?? "") as Setup;
const { server, recorded } = await SHOPS[setup.way](setup, handle);
// Its turn comes again after all others have had theirs.
server.keepAliveTimeout = 120_000;

const tell = (message: Message): void => void process.send?.(message);

async function take(turn: Turn): Promise<void> {
  handlerMs = turn.handlerMs;
  left = turn.events;
  const ended = new Promise<void>((resolve) => {
    allEnded = resolve;
  });
  const before = process.cpuUsage();
  tell({ begun: null });
  await ended;
  await recorded();
  tell({ recorded: null });
  await pause(AFTERWARDS_MS);
  const { user, system } = process.cpuUsage(before);
  if (left !== 0) throw new Error(`${-left} handlers ran twice`);
  tell({ cost: { cpuUs: user + system } });
}

process.on("message", (turn: Turn) => {
  take(turn).catch((error: unknown) => tell({ failed: String(error) }));
});
// The bench has ended, or was ended in mid-work.
process.on("disconnect", () => process.exit());
tell({ listening: { port: portOf(server), path: PATHS.rsa, node: process.versions.node } });
