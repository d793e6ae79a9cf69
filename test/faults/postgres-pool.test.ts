/** Handlers that have taken every connection of the program's own pool, and wait for one more, keep nobody else waiting. */
import { createReceiver, type Notice } from "@payhooks/core";
import { pgEffects } from "@payhooks/core/effects/postgres";
import { type PostgresTarget, postgresInbox } from "@payhooks/core/postgres";
import pg from "pg";
import { expect, it } from "vitest";
import { silent } from "../support/silent.ts";
import { testEvent } from "./harness/events.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { deliver } from "./harness/receivers.ts";
import { pause, type Scope, until, withScope } from "./harness/scope.ts";
import { keys, LEASE_MS, WORST_ANSWER_MS } from "./harness/system.ts";

const POOL = 4;

/** A shop whose handlers take every connection of its pool, and each wait for one more, until the test ends that. */
async function starving(scope: Scope, targetOf: (pool: pg.Pool) => PostgresTarget) {
  const server = await PostgresServer.start(scope);
  await server.tell("CREATE TABLE booked (id text PRIMARY KEY)");
  const pool = scope.add(new pg.Pool({ connectionString: server.url, max: POOL }), (one) => one.end());
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: postgresInbox(targetOf(pool), { leaseMs: LEASE_MS, pollMs: 100, logger: silent }),
    effects: pgEffects(pool, { idleTimeoutMs: 60_000, lockTimeoutMs: 5_000 }),
    concurrency: 4 * POOL,
    logger: silent,
  });
  scope.add(receiver, (one) => one.close({ graceMs: 1_000 }));
  const notices: Notice[] = [];
  receiver.observe((notice) => void notices.push(notice));
  let inTransaction = 0;
  let begun = 0;
  let isOver = false;
  receiver.ignore("WITHDRAWAL").onDeposit(
    async ({ payTxnId }, ctx) => {
      begun++;
      await ctx.transaction(async (tx) => {
        inTransaction++;
        while (!isOver) await Promise.race([pool.query("SELECT 1"), pause(200)]);
        await tx.query("INSERT INTO booked VALUES ($1)", [payTxnId]);
      });
    },
    { timeoutMs: 60_000 },
  );
  await receiver.start();
  const first = Array.from({ length: 3 * POOL }, () => deliver(receiver, testEvent(keys.privateKey)));
  await until("every connection is taken", () => inTransaction === POOL && pool.waitingCount > 0);
  return {
    first,
    notices,
    receiver,
    begun: () => begun,
    end() {
      isOver = true;
    },
    async booked(): Promise<number> {
      const [row] = await server.tell("SELECT count(*)::int AS count FROM booked");
      return Number(row?.count);
    },
  };
}

it(
  "handlers that starve each other of connections starve no accept and no renewal",
  {
    timeout: 90_000,
  },
  () =>
    withScope(async (scope) => {
      const { first, notices, receiver, begun, end, booked } = await starving(scope, (pool) => pool);
      expect(new Set(await Promise.all(first))).toEqual(new Set([200]));
      let { length } = first;
      let worstMs = 0;
      // Five leases long it goes on accepting, and what it runs stays its own.
      for (const stuckAt = performance.now(); performance.now() - stuckAt < 5 * LEASE_MS; length++) {
        const sentAt = performance.now();
        expect(await deliver(receiver, testEvent(keys.privateKey))).toBe(200);
        worstMs = Math.max(worstMs, performance.now() - sentAt);
        await pause(50);
      }
      expect(worstMs).toBeLessThan(WORST_ANSWER_MS);
      expect((await receiver.health()).ok).toBe(true);
      end();
      await until("all are booked", async () => (await booked()) === length, { withinMs: 30_000 });
      // Each was begun once: no lease was lost on the way.
      expect(begun()).toBe(length);
      const wrong = notices.filter(({ type }) => ["lease-lost", "double-risk", "retry"].includes(type));
      expect(wrong).toEqual([]);
    }),
);

it("control: an inbox that takes its connections from the same pool is starved", { timeout: 90_000 }, () =>
  withScope(async (scope) => {
    const { notices, end } = await starving(scope, (pool) => ({
      query: (text, values) => pool.query(text, values),
    }));
    // Nobody renews the leases of what runs: all of it may run a second time.
    await until("a lease is lost", () => notices.some(({ type }) => type === "double-risk"));
    end();
  }),
);
