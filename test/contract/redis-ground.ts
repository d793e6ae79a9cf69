import { type RedisTarget, redisStore } from "@payhooks/core/redis";
import type { Cluster, Redis } from "ioredis";
import { environmentOf } from "../../packages/core/src/environment.ts";
import { pause } from "../faults/harness/scope.ts";
import { contractCases } from "./inbox-contract.ts";
import type { ContractCase, Ground } from "./rig.ts";
import { tableCases } from "./table-cases.ts";

/** Short, since here time is real; long enough for a process that gets little of a busy machine. */
const LEASE_MS = 600;

/**
 * The contract, without the one run of the table that makes 40,000 calls to the server: Redis runs the same functions
 * as the inboxes that do run it, and each of the table's rows by the other cases.
 */
export const redisCases: readonly ContractCase[] = contractCases.filter(
  ({ name, timeTravel }) => timeTravel === undefined && !name.startsWith("look-ups beside callbacks"),
);

const realTime = environmentOf({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
});

const silent = { info: () => {}, warn: () => {}, error: () => {} };
let grounds = 0;

/** What is left of it where only the way to Redis is another one: the table needs no second proof. */
export const wayCases: readonly ContractCase[] = contractCases.filter(
  (one) => one.timeTravel === undefined && !tableCases.includes(one),
);

/** Fresh data on a running Redis: keys of its own. Every process has connections of its own, which `cut` breaks. */
export function redisGround(
  connect: () => Redis | Cluster,
  { leaseMs = LEASE_MS }: { readonly leaseMs?: number } = {},
): Ground {
  const prefix = `contract-${process.pid}-${++grounds}`;
  const closes: (() => void)[] = [];
  return {
    clock: realTime,
    // Timers of the server and of the process are not set in the same millisecond.
    advance: (ms) => pause(ms + 5),
    timeTravel: false,
    leaseMs,
    depth: 3,
    endsWithProcess: false,
    open() {
      const connections = new Set<Redis | Cluster>();
      const cut = (): void => {
        for (const one of connections) one.disconnect();
      };
      closes.push(cut);
      const target: RedisTarget = tracked(connect(), connections);
      return { store: redisStore(target, { prefix, environment: realTime, logger: silent }), cut };
    },
    async close() {
      for (const close of closes) close();
    },
  };
}

/** The same connection, but every copy that is made of it, and of the copies, is noted. */
function tracked<Connection extends Redis | Cluster>(
  connection: Connection,
  connections: Set<Redis | Cluster>,
): Connection {
  connections.add(connection);
  connection.on("error", () => {});
  const duplicate = connection.duplicate.bind(connection) as (...args: readonly unknown[]) => Connection;
  Object.defineProperty(connection, "duplicate", {
    configurable: true,
    value: (...args: readonly unknown[]) => tracked(duplicate(...args), connections),
  });
  return connection;
}
