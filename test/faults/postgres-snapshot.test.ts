/**
 * Somebody holds a snapshot of PostgreSQL: a backup, a report, or a forgotten transaction. Nothing that ended since can be cleaned up,
 * although autovacuum is on. Retries and recovery have to go on all the same, however many events end meanwhile.
 */
import { createInbox } from "@payhooks/core/inbox";
import pg from "pg";
import { expect, it } from "vitest";
import { idleRunner } from "../bench/finished-records.ts";
import { benchEvent } from "../bench/redis-event.ts";
import { testEvent } from "./harness/events.ts";
import { storeOf } from "./harness/inbox.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { isLong, report } from "./harness/report.ts";
import { newSeed, type Scope, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, SOUND, System } from "./harness/system.ts";

const EVENTS = isLong ? 300_000 : 1_500;
const LEASE_MS = 5_000;
const LANES = 64;
const HANDLER_MS = 1_500;
const BACKOFF_MS = 1_000;
/** At full length the machine has nothing else to do; in the short form other tests run beside this. */
const BUSY_MS = isLong ? 0 : 10_000;
/** From the start of an attempt that fails to the start of the next one. */
const RETRY_WITHIN_MS = HANDLER_MS + 3_000 + BUSY_MS;
const RECOVERY_WITHIN_MS = 1.4 * LEASE_MS + 5_000 + BUSY_MS;
const KILLED_WITH = 12;

it(
  `retries and recovery go on while a snapshot is held and ${EVENTS} events end`,
  { timeout: 120_000 + EVENTS * 12 },
  () =>
    withScope(async (scope) => {
      const server = await PostgresServer.start(scope, { settings: ["autovacuum_naptime=1s"] });
      const inbox = { kind: "postgres", target: server.url } as const;
      const system = System.create(scope, inbox, newSeed("a snapshot is held"));
      const config = await system.config({ leaseMs: LEASE_MS, handlerMs: HANDLER_MS, backoffMs: BACKOFF_MS });
      await holdSnapshot(scope, server.url);
      const perSecond = await endMany(server.url, EVENTS);
      const { lookMs, dead } = await costs(server);

      const first = await ProcessUnderTest.start(scope, config);
      const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
      const late = testEvent(keys.privateKey, { manner: "throws" });
      await sender.sendAll([late]);
      const attempts = await until("the retry runs", () => {
        const lines = system.lines("started").filter(({ key }) => key === late.key);
        return lines.length > 1 ? lines : null;
      });
      const retriedMs = (attempts[1]?.at ?? Number.NaN) - (attempts[0]?.at ?? Number.NaN);

      const other = await system.config({ leaseMs: LEASE_MS });
      await ProcessUnderTest.start(scope, other);
      const events = Array.from({ length: KILLED_WITH }, () => testEvent(keys.privateKey));
      await sender.sendAll(events);
      await first.kill();
      const killedAt = performance.now();
      const isDone = (): boolean => {
        const done = new Set(system.lines("completed").map(({ key }) => key));
        return events.every(({ key }) => done.has(key));
      };
      await until("another process has run all", isDone, { withinMs: 60_000 });
      const recoveredMs = performance.now() - killedAt;

      const verdict = await system.judge(sender, { leaseMs: LEASE_MS });
      const figures = [
        `${EVENTS} events at ${Math.round(perSecond)} a second`,
        `${dead} dead rows`,
        `a look ${lookMs.toFixed(2)} ms`,
        `the retry after ${Math.round(retriedMs)} ms`,
        `recovered after ${Math.round(recoveredMs)} ms`,
      ];
      report("PostgreSQL: a snapshot is held", verdict, sender, figures.join(", "));
      expect(verdict).toMatchObject(SOUND);
      // The process that is killed is in the middle of some of them.
      expect(system.diedWhileRunning().notices).toBeGreaterThan(0);
      expect(retriedMs).toBeLessThan(RETRY_WITHIN_MS);
      expect(recoveredMs).toBeLessThan(RECOVERY_WITHIN_MS);
    }),
);

/** Holds a snapshot until the case ends. */
async function holdSnapshot(scope: Scope, url: string): Promise<void> {
  const client = scope.add(new pg.Client({ connectionString: url }), (one) => one.end());
  client.on("error", () => {});
  await client.connect();
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await client.query("SELECT count(*) FROM pg_class");
}

/** Accepts and runs so many events. Returns how many ended in a second. */
async function endMany(url: string, count: number): Promise<number> {
  const inbox = createInbox(storeOf({ kind: "postgres", target: url }, {}));
  await inbox.ready();
  let ended = 0;
  const runner = {
    ...idleRunner,
    run: async () => ({ outcome: { kind: "done" as const }, changes: [], onWritten: () => void ended++ }),
  };
  await inbox.run(runner, { concurrency: LANES });
  const startedAt = performance.now();
  let sent = 0;
  const lane = async (): Promise<void> => {
    while (sent++ < count) await inbox.accept(benchEvent());
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await until("all have ended", () => ended >= count, { withinMs: 120_000 });
  const tookMs = performance.now() - startedAt;
  await inbox.close({ graceMs: 10_000 });
  return (count * 1_000) / tookMs;
}

/** The time of a look when nothing is due, and how many rows autovacuum cannot clean up. */
async function costs(server: PostgresServer): Promise<{ readonly lookMs: number; readonly dead: number }> {
  const store = storeOf({ kind: "postgres", target: server.url }, {});
  await store.open();
  const times: number[] = [];
  for (let look = 0; look < 40; look++) {
    const from = performance.now();
    await store.takeDue({ usual: 10, patient: 10 }, LEASE_MS);
    times.push(performance.now() - from);
  }
  await store.close();
  const rows = await server.tell("SELECT sum(n_dead_tup)::int AS dead FROM pg_stat_user_tables");
  return { lookMs: times.toSorted((a, b) => a - b)[20] ?? Number.NaN, dead: Number(rows[0]?.dead) };
}
