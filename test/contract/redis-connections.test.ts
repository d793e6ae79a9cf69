import { composeInbox } from "@payhooks/core/inbox";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { until, withScope } from "../faults/harness/scope.ts";
import { redisGround } from "./redis-ground.ts";
import { newId, sampleEvent, sampleRunner } from "./sample-events.ts";

const ROUNDS = 5;
const EVENTS = 40;

it("connections that a primary refuses again and again gather no listeners", { timeout: 60_000 }, () =>
  withScope(async (scope) => {
    const server = await RedisServer.start(scope);
    const connections: Redis[] = [];
    const connect = (): Redis => noted(new Redis(server.url, { lazyConnect: true }), connections);
    const parts = redisGround(connect).open();
    const inbox = scope.add(composeInbox({ ...parts, durability: "host" }), (one) =>
      one.close({ graceMs: 0 }),
    );
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    scope.add(null, () => process.off("warning", onWarning));
    const runner = sampleRunner();
    await inbox.run(runner, { concurrency: EVENTS });
    let acknowledged = 0;
    const acceptMany = async (): Promise<number> => {
      const accepts = Array.from({ length: EVENTS }, () => inbox.accept(sampleEvent(newId(), Date.now())));
      const fulfilled = (await Promise.allSettled(accepts)).filter(
        ({ status }) => status === "fulfilled",
      ).length;
      acknowledged += fulfilled;
      return fulfilled;
    };
    const allDone = () =>
      until("all ran", () => new Set(runner.leases.map(({ data }) => data.id)).size >= acknowledged);
    const listeners = (): readonly number[] =>
      connections.map((one) =>
        one.eventNames().reduce((count: number, name) => count + one.listenerCount(name), 0),
      );

    expect(await acceptMany()).toBe(EVENTS);
    await allDone();
    const before = listeners();
    const sockets = new Set(connections.map(({ stream }) => stream));
    for (let round = 0; round < ROUNDS; round++) {
      await server.tell("REPLICAOF", "127.0.0.1", 1);
      expect(await acceptMany()).toBe(0);
      await server.tell("REPLICAOF", "NO", "ONE");
      await until("it accepts again", async () => (await acceptMany()) === EVENTS);
      for (const { stream } of connections) sockets.add(stream);
    }
    await allDone();
    // It did connect anew each time.
    expect(sockets.size).toBeGreaterThan(before.length + ROUNDS);
    expect(listeners()).toEqual(before);
    expect(warnings).toEqual([]);
  }),
);

/** The connection and every copy that is made of it. */
function noted(connection: Redis, connections: Redis[]): Redis {
  connections.push(connection);
  const duplicate = connection.duplicate.bind(connection);
  connection.duplicate = (override) => noted(duplicate(override), connections);
  return connection;
}
