import { redisStore } from "@payhooks/core/redis";
import type { Cluster, Redis } from "ioredis";
import { environmentOf } from "../../packages/core/src/time/environment.ts";
import { pause } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import type { FixtureKind, InboxFixture } from "./inbox-processes.ts";

/** Short, since here time is real; long enough for a process that gets little of a busy machine. */
const LEASE_MS = 1_500;

/** Well below a lease. */
const REST_MS = 120;

/** No days pass: here time is real. */
export const redisKind: FixtureKind = { timeTravel: false, endsWithProcess: false };

let fixtures = 0;

/** Fresh data on a running Redis: keys of its own. Every process has connections of its own, which `cut` breaks. */
export function redisInboxFixture(connect: () => Redis | Cluster): InboxFixture {
  const prefix = `contract-${process.pid}-${++fixtures}`;
  const closes: (() => void)[] = [];
  return {
    ...redisKind,
    clock: environmentOf(),
    // Calls that are under way have to end in this time, on a busy machine too.
    advance: (ms) => pause(Math.max(ms + 5, REST_MS)),
    leaseMs: LEASE_MS,
    open() {
      const connections = new Set<Redis | Cluster>();
      const cut = (): void => {
        for (const one of connections) one.disconnect();
      };
      closes.push(cut);
      return { store: redisStore(tracked(connect(), connections), { prefix, logger: silent }), cut };
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
