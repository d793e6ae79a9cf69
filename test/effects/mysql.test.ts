/** Effects through mysql2, with the code that docs/guides/exactly-once.md shows, on a real MariaDB. */
import type { EffectContext, Receiver } from "@payhooks/core";
import { createHarness, createTestKeys, type Harness } from "@payhooks/core/testing";
import { createPool, type Pool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type MariadbServer, startMariadb } from "./mariadb-server.ts";
import { mysqlEffects } from "./mysql-effects.ts";

const keys = createTestKeys();
const PAY = "UPDATE orders SET paid = paid + 1 WHERE reference = 'order-1'";
let server: MariadbServer;
let pool: Pool;

beforeAll(async () => {
  server = await startMariadb();
});
afterAll(() => server.stop());

beforeEach(async () => {
  pool = createPool(server.url);
  await pool.query("DROP TABLE IF EXISTS payhooks_effects");
  await pool.query("DROP TABLE IF EXISTS orders");
  await pool.query(
    "CREATE TABLE orders (reference VARCHAR(99) PRIMARY KEY, paid INT NOT NULL) ENGINE = InnoDB",
  );
  await pool.query("INSERT INTO orders VALUES ('order-1', 0), ('order-2', 0)");
});
afterEach(() => pool.end());

const harness = (
  register: (receiver: Receiver<EffectContext<PoolConnection>>) => unknown,
): Promise<Harness> => createHarness({ register, keys, receiver: { effects: mysqlEffects(pool) } });
const timesPaid = async (): Promise<readonly unknown[]> => {
  const [rows] = await pool.query<RowDataPacket[]>("SELECT paid FROM orders ORDER BY reference");
  return rows.map(({ paid }) => paid);
};

describe("effects through mysql2", { timeout: 30_000 }, () => {
  it("happen once, though the process dies behind the commit", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction((tx) => tx.query(PAY))),
    );
    const delivery = await t.deposit();
    await t.crashAfter("deposit", delivery);
    expect(await timesPaid()).toEqual([1, 0]);
    expect(t.notices).toContainEqual(expect.objectContaining({ type: "effect-skipped" }));
  });

  it("happen once when two processes run the handler at the same moment", async () => {
    const register = (receiver: Receiver<EffectContext<PoolConnection>>): unknown =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query("SELECT SLEEP(0.1)");
          await tx.query(PAY);
        }),
      );
    const both = [await harness(register), await harness(register)];
    const elsewhere = await createHarness({ keys, register: (receiver) => receiver.onDeposit(() => {}) });
    const { sent } = await elsewhere.deposit();
    const ends = await Promise.all(both.map((t) => t.deliver("payments", sent)));
    expect(ends.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
    expect(await timesPaid()).toEqual([1, 0]);
  });

  it("are repeated after a deadlock, which counts as no attempt", async () => {
    const register = (receiver: Receiver<EffectContext<PoolConnection>>): unknown =>
      receiver.onDeposit(
        ({ referenceId }, ctx) =>
          ctx.transaction(async (tx) => {
            for (const order of referenceId === "up" ? [1, 2] : [2, 1]) {
              await tx.query("UPDATE orders SET paid = paid + 1 WHERE reference = ?", [`order-${order}`]);
              await tx.query("SELECT SLEEP(0.2)");
            }
          }),
        { maxAttempts: 1 },
      );
    const both = [await harness(register), await harness(register)];
    await Promise.all(both.map((t, at) => t.deposit({ referenceId: at === 0 ? "up" : "down" })));
    expect(await timesPaid()).toEqual([2, 2]);
  });

  const SNEAKY = "CREATE TABLE IF NOT EXISTS sneaky (id INT)";
  it.each([
    ["COMMIT"],
    ["ROLLBACK"],
    // These commit without a word.
    [SNEAKY],
    ["START TRANSACTION", PAY],
    [PAY, SNEAKY, "throw"],
    ["COMMIT", PAY, "throw"],
    ["ROLLBACK", PAY, "throw"],
    [PAY, "COMMIT", "SELECT no_such_function()"],
  ])("hold the event, and call nothing again, after %s, %s, %s", async (...statements) => {
    let calls = 0;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          calls++;
          for (const sql of statements) {
            if (sql === "throw") throw new Error("closed on Sundays");
            await tx.query(sql);
          }
        }),
      ),
    );
    await t.deposit();
    await t.advance("2h");
    expect(calls).toBe(1);
    expect(await t.held()).toMatchObject([
      { reason: "rejected", detail: expect.stringContaining("has committed or rolled back the transaction") },
    ]);
    const [rows] = await pool.query<RowDataPacket[]>("SELECT id FROM payhooks_effects WHERE done");
    expect(rows).toEqual([]);
  });

  it.each([
    ["swallows a failed statement, which MySQL forgives", true, 1],
    ["fails", false, 2],
  ])("pay once if the function %s", async (_, swallows, times) => {
    let calls = 0;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query(PAY);
          if (++calls > 1) return;
          const wrong = tx.query("SELECT no_such_function()");
          await (swallows ? wrong.catch(() => {}) : wrong);
        }),
      ),
    );
    await t.deposit();
    await t.advance("1m");
    expect(calls).toBe(times);
    expect(await timesPaid()).toEqual([1, 0]);
  });

  it("have ids that are told apart by case", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        await ctx.transaction("pay", (tx) => tx.query(PAY));
        await ctx.transaction("PAY", (tx) => tx.query(PAY));
      }),
    );
    await t.deposit();
    expect(await timesPaid()).toEqual([2, 0]);
  });

  it("are forgotten in steps", async () => {
    const effects = mysqlEffects(pool);
    await effects.open();
    await pool.query(
      "INSERT INTO payhooks_effects (id, at) VALUES ('old', NOW() - INTERVAL 402 DAY), ('new', NOW())",
    );
    expect(await effects.prune()).toBe(false);
    const [rows] = await pool.query<RowDataPacket[]>("SELECT CAST(id AS CHAR) AS id FROM payhooks_effects");
    expect(rows).toEqual([{ id: "new" }]);
  });
});
