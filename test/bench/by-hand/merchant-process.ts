/** A merchant's process, from the bench's side. */
import { fork } from "node:child_process";
import { on } from "node:events";
import type { SignedDelivery } from "@payhooks/core/testing";
import type { MariadbServer } from "../../effects/mariadb-server.ts";
import type { PostgresServer } from "../../faults/harness/postgres-server.ts";
import type { RedisServer } from "../../faults/harness/redis-server.ts";
import type { Scope } from "../../faults/harness/scope.ts";
import { senderTo } from "../load.ts";
import type { Message, Setup, Told, Turn } from "./ways.ts";

/** The cost of one event of a turn. */
export interface Sample {
  /** Processor time of the merchant's process, microseconds. */
  readonly cpuUs: number;
  /** Of its server; 0 where the way has none. */
  readonly serverCpuUs: number;
  /** From the first delivery until the last handler's end is recorded. */
  readonly perSecond: number;
}

export interface Merchant {
  readonly node: string;
  /** Sends these, and waits until every one is handled and the end of its handler recorded. */
  take(deliveries: readonly SignedDelivery[], handlerMs: number): Promise<Sample>;
}

/** A database of the merchant's own. */
export type Database = RedisServer | PostgresServer | MariadbServer;

/** Deliveries under way to one server at one time. */
const IN_FLIGHT = 64;

/** @param database null where the way has none */
export async function startMerchant(
  scope: Scope,
  program: string,
  setup: Setup,
  database: Database | null,
): Promise<Merchant> {
  const child = fork(program, [JSON.stringify(setup)], {
    // None of this process's own: a merchant runs plain JavaScript.
    execArgv: [],
    env: { ...process.env, NODE_ENV: "production" },
  });
  scope.add(child, () => child.kill("SIGKILL"));
  const messages = on(child, "message", { close: ["exit"] });

  /** Its next message, which must be this one. */
  async function told<Name extends keyof Told>(name: Name): Promise<Told[Name]> {
    const { value, done } = await messages.next();
    if (done) throw new Error(`${setup.way}: the process has ended`);
    const [message] = value as [Message];
    const found = message[name];
    if (found === undefined) throw new Error(`${setup.way}: ${JSON.stringify(message)}`);
    return found;
  }

  const { node, ...target } = await told("listening");
  const sender = scope.add(senderTo(target, IN_FLIGHT), (one) => one.close());
  return {
    node,
    async take(deliveries, handlerMs) {
      const serverBefore = await cpuUsOf(database);
      child.send({ events: deliveries.length, handlerMs } satisfies Turn);
      await told("begun");
      const startedAt = performance.now();
      const [ms] = await Promise.all([
        told("recorded").then(() => performance.now() - startedAt),
        sender.send(deliveries),
      ]);
      const { cpuUs } = await told("cost");
      const events = deliveries.length;
      return {
        cpuUs: cpuUs / events,
        serverCpuUs: ((await cpuUsOf(database)) - serverBefore) / events,
        perSecond: (events / ms) * 1_000,
      };
    },
  };
}

/** The processor time of a server so far, with all its threads. */
async function cpuUsOf(database: Database | null): Promise<number> {
  if (database === null) return 0;
  if ("cpuUs" in database) return database.cpuUs();
  const text = String(await database.tell("INFO", "cpu"));
  const seconds = (field: string): number => Number(new RegExp(`^${field}:([\\d.]+)`, "m").exec(text)?.[1]);
  return 1e6 * (seconds("used_cpu_user") + seconds("used_cpu_sys"));
}
