/** What the precautions are for: each left out, on a real PostgreSQL, and the harm that comes of it. */
import type { EffectContext, Effects, Receiver } from "@payhooks/core";
import { effects, type OwnClient } from "@payhooks/core/effects";
import { createHarness, createTestKeys, type Harness } from "@payhooks/core/testing";
import { Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";

const keys = createTestKeys();
const PAY = "UPDATE orders SET paid = paid + 1";
const scope = new Scope();
let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await PostgresServer.start(scope);
  pool = new Pool({ connectionString: server.url });
});
afterAll(async () => {
  await pool.end();
  await scope.close();
});
beforeEach(async () => {
  await pool.query("DROP TABLE IF EXISTS effects, orders");
  await pool.query("CREATE TABLE effects (id text PRIMARY KEY); CREATE TABLE orders (paid integer)");
  await pool.query("INSERT INTO orders VALUES (0)");
});

/** The least that a client must be, with some of it left out or done wrong. */
function careless(changes: Partial<OwnClient<PoolClient>> = {}): Effects<EffectContext<PoolClient>> {
  return effects<PoolClient>({
    async transaction(work) {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        const value = await work(client);
        await client.query("COMMIT");
        return value;
      } catch (error) {
        await client.query("ROLLBACK");
        throw error;
      } finally {
        client.release();
      }
    },
    insert: async (tx, id) =>
      (await tx.query("INSERT INTO effects VALUES ($1) ON CONFLICT DO NOTHING", [id])).rowCount === 1,
    ...changes,
  });
}

const harness = (
  kept: Effects<EffectContext<PoolClient>>,
  register: (receiver: Receiver<EffectContext<PoolClient>>) => unknown,
): Promise<Harness> => createHarness({ keys, register, receiver: { effects: kept } });
const timesPaid = async (): Promise<unknown> => (await pool.query("SELECT paid FROM orders")).rows[0]?.paid;

describe("control", { timeout: 30_000 }, () => {
  it("without isIntact a swallowed SQL error is done, and nothing is paid", async () => {
    const t = await harness(careless(), (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query(PAY);
          await tx.query("SELECT no_such_function()").catch(() => {});
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
    expect(await timesPaid()).toBe(0);
  });

  it("with the id stored outside of the transaction an attempt that fails is never made up for", async () => {
    const insert: OwnClient<PoolClient>["insert"] = async (_, id) =>
      (await pool.query("INSERT INTO effects VALUES ($1) ON CONFLICT DO NOTHING", [id])).rowCount === 1;
    let isFirst = true;
    const t = await harness(careless({ insert }), (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          if (isFirst) {
            isFirst = false;
            throw new Error("not today");
          }
          await tx.query(PAY);
        }),
      ),
    );
    await t.deposit();
    await t.advance("1m");
    expect(await t.held()).toEqual([]);
    expect(await timesPaid()).toBe(0);
  });

  it("without isRepeatable a serialization failure uses up an attempt", async () => {
    let isFirst = true;
    const t = await harness(careless(), (receiver) =>
      receiver.onDeposit(
        (_, ctx) =>
          ctx.transaction(async (tx) => {
            await tx.query(PAY);
            if (!isFirst) return;
            isFirst = false;
            await tx.query("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$");
          }),
        { maxAttempts: 1 },
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "held" });
    expect(await timesPaid()).toBe(0);
  });
});
