/** Leaves out each precaution in turn, on a real PostgreSQL, and shows the harm. */
import type { EffectContext, Effects, Receiver } from "@payhooks/core";
import { type EffectInsertResult, effects, type OwnClient } from "@payhooks/core/effects";
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
  await pool.query(
    "CREATE TABLE effects (id text PRIMARY KEY, done boolean); CREATE TABLE orders (paid integer)",
  );
  await pool.query("INSERT INTO orders VALUES (0)");
});

async function insertOn(
  on: Pool | PoolClient,
  id: string,
  as: "begun" | "done",
): Promise<EffectInsertResult> {
  const sql = "INSERT INTO effects VALUES ($1, $2) ON CONFLICT DO NOTHING";
  if ((await on.query(sql, [id, as === "done"])).rowCount === 1) return { found: "nothing" };
  const { rows } = await on.query<{ done: boolean }>("SELECT done FROM effects WHERE id = $1", [id]);
  return { found: rows[0]?.done === true ? "done" : "begun" };
}

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
    insert: (tx, id, as) => insertOn(tx, id, as),
    finish: async (tx, id) =>
      (await tx.query("UPDATE effects SET done = true WHERE id = $1 AND NOT done", [id])).rowCount === 1,
    ...changes,
  });
}

const harness = (
  kept: Effects<EffectContext<PoolClient>>,
  register: (receiver: Receiver<EffectContext<PoolClient>>) => unknown,
): Promise<Harness> => createHarness({ keys, register, receiver: { effects: kept } });
const timesPaid = async (): Promise<unknown> => (await pool.query("SELECT paid FROM orders")).rows[0]?.paid;

describe("control", { timeout: 30_000 }, () => {
  it("without a statement before the commit a swallowed SQL error is done, and nothing is paid", async () => {
    const t = await harness(careless({ finish: async () => true }), (receiver) =>
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

  it.each([
    [
      "stored as done at the start",
      { insert: (tx: PoolClient, id: string) => insertOn(tx, id, "done"), finish: async () => true },
    ],
    [
      "stored outside of the transaction",
      { insert: (_: PoolClient, id: string) => insertOn(pool, id, "done") },
    ],
  ])("with the id %s an attempt that fails behind a commit is never made up for", async (_, changes) => {
    let isFirst = true;
    const t = await harness(careless(changes), (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          if (isFirst) {
            isFirst = false;
            await tx.query("COMMIT");
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

  it("without hasEnded a payment behind a rollback is made twice", async () => {
    let isFirst = true;
    const t = await harness(careless(), (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          if (isFirst) await tx.query("ROLLBACK");
          await tx.query(PAY);
          if (isFirst) {
            isFirst = false;
            throw new Error("not today");
          }
        }),
      ),
    );
    await t.deposit();
    await t.advance("1m");
    expect(await timesPaid()).toBe(2);
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
