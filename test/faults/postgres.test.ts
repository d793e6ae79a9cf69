/** PostgreSQL dies, freezes, refuses or is cut off, and processes die on it: an answer in time, always, and nothing lost. */
import pg from "pg";
import { describe, expect, it } from "vitest";
import { testEvent } from "./harness/events.ts";
import { refused } from "./harness/fault-under-load.ts";
import { type KillFixture, killAtPoints, killUnderLoad } from "./harness/kill-cases.ts";
import { KILL_POINTS } from "./harness/kill-points.ts";
import { expectSound, play } from "./harness/postgres-faults.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { NetworkProxy } from "./harness/proxy.ts";
import { isLong, lengthOf, report } from "./harness/report.ts";
import { newSeed, pause, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, System, type Verdict, WORST_ANSWER_MS } from "./harness/system.ts";

describe("PostgreSQL", () => {
  it("is killed and restarted, frozen, or away for long", { timeout: 180_000 }, async () => {
    const [killed, frozen, away] = await Promise.all([
      play(
        "PostgreSQL kill -9",
        { begin: ({ server }) => server.kill(), end: ({ server }) => server.up() },
        { faultMs: 500 },
      ),
      play("PostgreSQL frozen", {
        begin: ({ server }) => server.freeze(),
        end: ({ server }) => server.thaw(),
      }),
      play("PostgreSQL away", {
        begin: ({ server }) => server.kill(),
        end: ({ server }) => server.up(),
      }),
    ]);
    for (const played of [killed, frozen, away]) expectSound(played);
    for (const played of [frozen, away]) expect(refused(played)).toBeGreaterThan(0);
  });

  it("is read-only, out of connections, or ends every session again and again", {
    timeout: 180_000,
  }, async () => {
    const others: pg.Client[] = [];
    let ending: NodeJS.Timeout | undefined;
    const [readOnly, full, ended] = await Promise.all([
      play("PostgreSQL read-only", {
        begin: async ({ server }) => {
          await server.tell("ALTER SYSTEM SET default_transaction_read_only = on");
          await server.tell("SELECT pg_reload_conf()");
        },
        end: async ({ server }) => {
          await server.tell("BEGIN READ WRITE; COMMIT");
          await server.tell("ALTER SYSTEM RESET default_transaction_read_only");
          await server.tell("SELECT pg_reload_conf()");
        },
      }),
      play(
        "PostgreSQL out of connections",
        {
          begin: async ({ server, proxy }) => {
            // All sessions go, and others take their places first.
            proxy.refuse(true);
            for (let n = 0; n < 7; n++) {
              const client = new pg.Client({ connectionString: server.url, user: "app" });
              client.on("error", () => {});
              await client.connect().then(
                () => others.push(client),
                () => {},
              );
            }
            proxy.refuse(false);
          },
          end: () => Promise.all(others.map((client) => client.end())),
        },
        { settings: ["max_connections=10", "superuser_reserved_connections=3", "max_wal_senders=0"] },
      ),
      play("PostgreSQL ends sessions", {
        begin: ({ server }) => {
          ending = setInterval(() => {
            void server
              .tell(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'payhooks'",
              )
              .catch(() => {});
          }, 200);
        },
        end: () => clearInterval(ending),
      }).finally(() => clearInterval(ending)),
    ]);
    for (const played of [readOnly, full, ended]) expectSound(played);
    expect(refused(readOnly)).toBeGreaterThan(0);
  });

  it("is behind a network that is slow, resets, refuses or goes silent", { timeout: 180_000 }, async () => {
    let resets: NodeJS.Timeout | undefined;
    const [slow, reset, gone, halfOpen] = await Promise.all([
      play("PostgreSQL: latency 200 ms", {
        begin: ({ proxy }) => {
          proxy.latencyMs = 200;
        },
        end: ({ proxy }) => {
          proxy.latencyMs = 0;
        },
      }),
      play("PostgreSQL: connections reset five times a second", {
        begin: ({ proxy }) => {
          resets = setInterval(() => proxy.reset(), 200);
        },
        end: () => clearInterval(resets),
      }).finally(() => clearInterval(resets)),
      play("PostgreSQL: connections refused", {
        begin: ({ proxy }) => proxy.refuse(true),
        end: ({ proxy }) => proxy.refuse(false),
      }),
      play("PostgreSQL: half-open connections", { begin: ({ proxy }) => proxy.halfOpen(), end: () => {} }),
    ]);
    for (const played of [slow, reset, gone, halfOpen]) expectSound(played);
    expect(refused(gone)).toBeGreaterThan(0);
  });

  it(
    "control: if it does not wait for its log, it loses acknowledged events",
    {
      timeout: 60_000,
    },
    () =>
      withScope(async (scope) => {
        const server = await PostgresServer.start(scope, {
          settings: ["synchronous_commit=off", "wal_writer_delay=10000"],
        });
        const system = System.create(scope, { kind: "postgres", target: server.url }, newSeed("no sync"));
        const config = await system.config({ handlerMs: 5_000, concurrency: 2 });
        await ProcessUnderTest.start(scope, config);
        const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
        await sender.sendAll(Array.from({ length: 30 }, () => testEvent(keys.privateKey)));
        await server.kill();
        await server.up();
        const lost = await system.judge(sender);
        report("control: PostgreSQL kill -9, synchronous_commit off", lost, sender, "must be caught");
        expect(lost.lost.length).toBeGreaterThan(0);
      }),
  );
});

/** A primary that dies; its standby is promoted, and a proxy leads there as a name in DNS would. */
function failover(name: string, isSynchronous: boolean): Promise<Verdict> {
  return withScope(async (scope) => {
    const primary = await PostgresServer.start(scope);
    const standby = await PostgresServer.startStandby(scope, primary);
    if (isSynchronous) {
      await primary.tell("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
      await primary.tell("SELECT pg_reload_conf()");
    }
    const proxy = await NetworkProxy.start(scope, primary.port);
    const inbox = { kind: "postgres", target: primary.urlOf(proxy.port) } as const;
    const system = System.create(scope, inbox, newSeed(name));
    const config = await system.config({ handlerMs: 3_000, concurrency: 8 });
    await ProcessUnderTest.start(scope, config);
    const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
    let over = false;
    const sending = sender.run(() => testEvent(keys.privateKey), { isOver: () => over, perSecond: 30 });
    scope.add(null, () => {
      over = true;
      return sending;
    });
    const acknowledges = async (more: number): Promise<void> => {
      const enough = sender.acknowledged.size + more;
      await until("it acknowledges", () => sender.acknowledged.size >= enough, { withinMs: 30_000 });
    };
    await acknowledges(30);
    // The standby lags: what the primary is given now, it has alone.
    standby.freeze();
    // Data on its way to the standby would still arrive.
    await primary.tell("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    await pause(1_000);
    await primary.kill();
    standby.thaw();
    await standby.promote();
    proxy.reset();
    proxy.target = standby.port;
    await acknowledges(30);
    over = true;
    await sending;
    const verdict = await system.judge(sender);
    report(name, verdict, sender, isSynchronous ? "" : "the loss is the lag");
    expect(system.longestMs(sender.answered, sender)).toBeLessThanOrEqual(WORST_ANSWER_MS);
    return verdict;
  });
}

it("a failover to a synchronous standby loses nothing, and one to an asynchronous standby loses the writes that it had not got", {
  timeout: 180_000,
}, async () => {
  const [waits, doesNot] = await Promise.all([
    failover("PostgreSQL failover, synchronous standby", true),
    failover("control: PostgreSQL failover, asynchronous standby", false),
  ]);
  expect(waits).toMatchObject({ lost: [], unreported: [] });
  expect(doesNot.lost.length).toBeGreaterThan(0);
});

const onPostgres: KillFixture = {
  name: "PostgreSQL",
  // At full length the machine has nothing else to do; in the short form other tests run beside these.
  doublesPerKill: isLong ? 0.05 : 2,
  inboxAt: async (scope) => ({ kind: "postgres", target: (await PostgresServer.start(scope)).url }),
};

const options = { concurrent: !isLong };
describe("kill -9 under load", options, () => killUnderLoad(onPostgres, lengthOf(5, 200)));
describe("kill -9 at a point", options, () => killAtPoints(onPostgres, KILL_POINTS, lengthOf(1, 10)));
