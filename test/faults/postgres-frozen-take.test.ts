/** A process is stopped while PostgreSQL hands it large records: the others run everything, and soon. */
import { expect, it } from "vitest";
import { testEvent } from "./harness/events.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { newSeed, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, System } from "./harness/system.ts";

const LEASE_MS = 5_000;
const EVENTS = 200;
/** Far more than what a connection takes in without a reader. */
const message = "m".repeat(58_000);

it(
  "a process that is stopped in the middle of a take holds nothing that others need",
  {
    timeout: 120_000,
  },
  () =>
    withScope(async (scope) => {
      const server = await PostgresServer.start(scope);
      const system = System.create(scope, { kind: "postgres", target: server.url }, newSeed("frozen take"));
      const config = await system.config({ run: "elsewhere", leaseMs: LEASE_MS });
      await ProcessUnderTest.start(scope, config);
      const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
      await sender.sendAll(Array.from({ length: EVENTS }, () => testEvent(keys.privateKey, { message })));

      const stopped = await ProcessUnderTest.start(scope, {
        ...(await system.config({ leaseMs: LEASE_MS, concurrency: EVENTS / 2 })),
        stopsInTake: true,
      });
      await until("the process is stopped", () => stopped.isFrozen);
      expect(system.lines("started")).toEqual([]);

      await ProcessUnderTest.start(scope, await system.config({ leaseMs: LEASE_MS }));
      const withinMs = 1.4 * LEASE_MS + 5_000;
      await until("another process has run all", () => system.lines("completed").length === EVENTS, {
        withinMs,
      });
      stopped.thaw();
      const verdict = await system.judge(sender);
      expect(verdict).toMatchObject({ acknowledged: EVENTS, completed: EVENTS, lost: [], doubles: [] });
    }),
);
