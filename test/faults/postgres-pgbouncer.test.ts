/** PostgreSQL behind a real PgBouncer in transaction mode, which gives each statement to another session. */
import { postgresStore } from "@payhooks/core/postgres";
import { storeContract } from "@payhooks/core/testing/store";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postgresStoreFixture, postgresTraits } from "../contract/postgres-store-fixture.ts";
import { testEvent } from "./harness/events.ts";
import { PgBouncer } from "./harness/pgbouncer.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { Scope, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, LEASE_MS, SOUND, System, WORST_ANSWER_MS } from "./harness/system.ts";

const scope = new Scope();
let server: PostgresServer;
let bouncer: PgBouncer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
  bouncer = await PgBouncer.start(scope, server);
}, 60_000);
afterAll(() => scope.close());

const url = (): string => server.urlOf(bouncer.port);

it("the pooler is in transaction mode: another statement may not find the setting of an earlier one", async () => {
  const clients = Array.from({ length: 4 }, () => new pg.Client({ connectionString: url() }));
  await Promise.all(clients.map((client) => client.connect()));
  const pidOf = async (client: pg.Client | undefined): Promise<unknown> =>
    (await client?.query("SELECT pg_backend_pid() AS pid, pg_sleep(0.1)"))?.rows[0]?.pid;
  const pids = await Promise.all(clients.map(pidOf));
  await Promise.all(clients.map((client) => client.end()));
  expect(new Set(pids).size).toBeLessThan(clients.length);
});

it("a pooler that was not announced is noticed at the start, and no setting reaches the program's own statements", async () => {
  const store = postgresStore(url(), { schema: "unannounced" });
  await expect(store.open()).rejects.toMatchObject({ code: "ERR_POSTGRES_UNSUITABLE" });
  await store.close();
  const own = new pg.Client({ connectionString: url() });
  await own.connect();
  for (let n = 0; n < 5; n++) {
    expect((await own.query("SHOW enable_seqscan")).rows).toEqual([{ enable_seqscan: "on" }]);
  }
  await own.end();
});

describe("the store contract: PostgreSQL behind PgBouncer", () => {
  for (const { name, run } of storeContract(() => postgresStoreFixture(url, { pooled: true }), {
    ...postgresTraits,
    announces: false,
  }))
    it.concurrent(name, run);
});

it(
  "an inbox behind PgBouncer loses nothing when PostgreSQL, PgBouncer and its processes are killed",
  { timeout: 120_000 },
  () =>
    withScope(async (own) => {
      const system = System.create(own, { kind: "postgres", target: url(), pooled: true }, 1);
      const config = await system.config({ handlerMs: 50, leaseMs: LEASE_MS });
      const sender = own.add(new Sender({ ports: [config.port] }), (one) => one.close());
      let over = false;
      const sending = sender.run(() => testEvent(keys.privateKey), { isOver: () => over, perSecond: 60 });
      own.add(null, () => {
        over = true;
        return sending;
      });
      const acknowledges = async (more: number): Promise<void> => {
        const enough = sender.acknowledged.size + more;
        await until("it acknowledges", () => sender.acknowledged.size >= enough, { withinMs: 30_000 });
      };
      const faults: readonly (() => Promise<void>)[] = [
        async () => {
          await bouncer.kill();
          await bouncer.up();
        },
        async () => {
          await server.kill();
          await server.up();
        },
      ];
      for (const fault of [...faults, ...faults]) {
        const one = await ProcessUnderTest.start(own, config);
        await acknowledges(20);
        await fault();
        await acknowledges(20);
        await one.kill();
      }
      await ProcessUnderTest.start(own, config);
      over = true;
      await sending;
      expect(await system.judge(sender)).toMatchObject(SOUND);
      expect(system.longestMs(sender.answered, sender)).toBeLessThanOrEqual(WORST_ANSWER_MS);
    }),
);
