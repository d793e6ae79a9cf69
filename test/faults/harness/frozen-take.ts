/** A process is stopped at a take of large records, before it runs any of them: the others run everything, and soon. */
import { expect } from "vitest";
import type { InboxConfig } from "./child-config.ts";
import { testEvent } from "./events.ts";
import { ProcessUnderTest } from "./processes.ts";
import { newSeed, type Scope, until } from "./scope.ts";
import { Sender } from "./sender.ts";
import { keys, System } from "./system.ts";

const LEASE_MS = 5_000;
const EVENTS = 200;
/** Far more than what a connection takes in without a reader. */
const message = "m".repeat(58_000);

export async function stopInTake(scope: Scope, inbox: InboxConfig): Promise<void> {
  const system = System.create(scope, inbox, newSeed("frozen take"));
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
}
