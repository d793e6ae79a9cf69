import { Redis } from "ioredis";
import { expect, it } from "vitest";
import type { SwapResult } from "../../packages/core/src/inbox/contract/store.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { swapAll, swapOf } from "../../packages/core/src/testing/store/writes.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { until, withScope } from "../faults/harness/scope.ts";
import { redisStoreFixture } from "./redis-store-fixture.ts";

const ROUNDS = 5;
const EVENTS = 40;

it("connections that a primary refuses again and again gather no listeners", { timeout: 60_000 }, () =>
  withScope(async (scope) => {
    const server = await RedisServer.start(scope);
    const connections: Redis[] = [];
    const fixture = redisStoreFixture(() => noted(new Redis(server.url, { lazyConnect: true }), connections));
    const store = scope.add(fixture.connect(), (one) => one.close());
    await store.open();
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    scope.add(null, () => process.off("warning", onWarning));
    let written = 0;
    /** Each by itself, as they come when there is little to do. */
    const writeMany = async (): Promise<ReadonlySet<SwapResult["kind"]>> => {
      const results = await Promise.all(
        Array.from({ length: EVENTS }, () => {
          const key = keyOf(written++);
          return swapAll(store, [swapOf(store, key, null, acceptedRecord(key, store.now(key)))]);
        }),
      );
      return new Set(results.flat().map(({ kind }) => kind));
    };
    const listeners = (): readonly number[] =>
      connections.map((one) =>
        one.eventNames().reduce((count: number, name) => count + one.listenerCount(name), 0),
      );

    expect(await writeMany()).toEqual(new Set(["written"]));
    const before = listeners();
    const sockets = new Set(connections.map(({ stream }) => stream));
    for (let round = 0; round < ROUNDS; round++) {
      await server.tell("REPLICAOF", "127.0.0.1", 1);
      expect(await writeMany()).toEqual(new Set(["not-written"]));
      await server.tell("REPLICAOF", "NO", "ONE");
      await until("writes are taken", async () => {
        const kinds = await writeMany();
        return kinds.size === 1 && kinds.has("written");
      });
      for (const { stream } of connections) sockets.add(stream);
    }
    // It did connect anew each time.
    expect(sockets.size).toBeGreaterThan(ROUNDS);
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
