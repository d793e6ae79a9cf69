/** Effects through mysql2, by `mysqlEffects` and by the code that docs/guides/exactly-once.md shows, on a real MariaDB. */
import type { EffectContext, Effects, Receiver } from "@payhooks/core";
import { type MysqlEffectsOptions, mysqlEffects } from "@payhooks/core/effects/mysql";
import { createHarness, createTestKeys, type Harness } from "@payhooks/core/testing";
import { createPool as createCallbackPool } from "mysql2";
import { createPool, type Pool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type MariadbServer, startMariadb } from "./mariadb-server.ts";
import { mysqlEffects as effectsByHand } from "./mysql-effects.ts";

type Context = EffectContext<PoolConnection>;

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

const harnessOf = (
  effects: Effects<Context>,
  register: (receiver: Receiver<Context>) => unknown,
): Promise<Harness> => createHarness({ register, keys, receiver: { effects } });
const timesPaid = async (): Promise<readonly unknown[]> => {
  const [rows] = await pool.query<RowDataPacket[]>("SELECT paid FROM orders ORDER BY reference");
  return rows.map(({ paid }) => paid);
};

describe.each([
  ["by mysqlEffects", mysqlEffects],
  ["by hand", effectsByHand],
])("effects through mysql2, %s,", { timeout: 30_000 }, (_, effectsOf: (pool: Pool) => Effects<Context>) => {
  const harness = (register: (receiver: Receiver<Context>) => unknown): Promise<Harness> =>
    harnessOf(effectsOf(pool), register);

  it("happen once, although the process dies right after the commit", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction((tx) => tx.query(PAY))),
    );
    const delivery = await t.deposit();
    await t.crashAfter("deposit", delivery);
    expect(await timesPaid()).toEqual([1, 0]);
    expect(t.notices).toContainEqual(expect.objectContaining({ type: "effect-skipped" }));
  });

  it("happen once when two processes run the handler at the same moment", async () => {
    const register = (receiver: Receiver<Context>): unknown =>
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
    const register = (receiver: Receiver<Context>): unknown =>
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
    const effects = effectsOf(pool);
    await effects.open();
    await pool.query(
      `INSERT INTO payhooks_effects (id, at, done)
      VALUES ('old', NOW() - INTERVAL 402 DAY, TRUE), ('new', NOW(), TRUE)`,
    );
    expect(await effects.prune()).toBe(false);
    const [rows] = await pool.query<RowDataPacket[]>("SELECT CAST(id AS CHAR) AS id FROM payhooks_effects");
    expect(rows).toEqual([{ id: "new" }]);
  });

  it("are found by a claim in a transaction that began before they were committed", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        const connection = await pool.getConnection();
        await connection.beginTransaction();
        // From here on, a plain SELECT of this transaction sees nothing newer.
        await connection.query("SELECT * FROM orders");
        await pool.query("INSERT INTO payhooks_effects (id, at, done) VALUES (?, NOW(), TRUE)", [
          ctx.effectId,
        ]);
        expect(await ctx.claimEffect(connection)).toBe(false);
        await connection.commit();
        connection.release();
      }),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
  });
});

describe("mysqlEffects", { timeout: 30_000 }, () => {
  const harness = (
    register: (receiver: Receiver<Context>) => unknown,
    options: MysqlEffectsOptions = {},
  ): Promise<Harness> => harnessOf(mysqlEffects(pool, options), register);

  it("leaves nothing of a function that catches a deadlock, and goes on", async () => {
    const other = await pool.getConnection();
    await other.beginTransaction();
    await other.query("UPDATE orders SET paid = paid + 100 WHERE reference = 'order-2'");
    // The deadlock's victim is the transaction that has written less.
    await other.query("INSERT INTO orders SELECT CONCAT('other-', seq), 0 FROM seq_1_to_100");
    let calls = 0;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          calls++;
          await tx.query(PAY);
          const theirs = other.query("UPDATE orders SET paid = paid + 100");
          const [mine] = await Promise.allSettled([
            tx.query("UPDATE orders SET paid = paid + 1 WHERE reference = 'order-2'"),
            theirs.then(() => other.rollback()),
          ]);
          expect(mine).toMatchObject({ reason: { errno: 1213 } });
          await tx.query(PAY);
        }),
      ),
    );
    await t.deposit();
    await t.advance("2h");
    other.release();
    expect([calls, await timesPaid()]).toEqual([1, [0, 0]]);
    expect(await t.held()).toMatchObject([{ reason: "rejected" }]);
  });

  it("does not wait longer than idleTimeoutMs for a process that froze in the same effect", async () => {
    const frozen = createPool(server.url);
    const register = (receiver: Receiver<Context>): unknown =>
      receiver.onDeposit((_, ctx) => ctx.transaction((tx) => tx.query(PAY)));
    const elsewhere = await createHarness({ keys, register: (receiver) => receiver.onDeposit(() => {}) });
    const { sent } = await elsewhere.deposit();
    let begun = (): void => {};
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const first = await harnessOf(mysqlEffects(frozen, { idleTimeoutMs: 1_000 }), (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query(PAY);
          begun();
          await new Promise(() => {});
        }),
      ),
    );
    void first.deliver("payments", sent);
    await hasBegun;
    const second = await harness(register, { lockTimeoutMs: 30_000 });
    expect(await second.deliver("payments", sent)).toMatchObject({ outcome: "done" });
    expect(await timesPaid()).toEqual([1, 0]);
    await frozen.end();
  });

  it("repeats a transaction that has waited too long for a lock, which counts as no attempt", async () => {
    const other = await pool.getConnection();
    await other.beginTransaction();
    await other.query(PAY);
    let calls = 0;
    const t = await harness(
      (receiver) =>
        receiver.onDeposit(
          (_, ctx) =>
            ctx.transaction(async (tx) => {
              if (++calls === 2) await other.rollback();
              await tx.query(PAY);
            }),
          { maxAttempts: 1 },
        ),
      { lockTimeoutMs: 1 },
    );
    await t.deposit();
    other.release();
    expect([calls, await timesPaid()]).toEqual([2, [1, 0]]);
  });

  it("puts the settings of a session back, after a success and after a failure", async () => {
    await pool.end();
    pool = createPool({ uri: server.url, connectionLimit: 1 });
    const settings = async (): Promise<unknown> =>
      (await pool.query("SELECT @@autocommit, @@innodb_lock_wait_timeout, @@wait_timeout"))[0];
    await pool.query("SET innodb_lock_wait_timeout = 7, wait_timeout = 77");
    const before = await settings();
    let within: unknown;
    const t = await harness((receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        await ctx.transaction(async (tx) => {
          [within] = await tx.query("SELECT @@autocommit AS auto, @@wait_timeout AS idle");
        });
        await ctx.transaction("fails", () => Promise.reject(new Error("closed"))).catch(() => {});
      }),
    );
    await t.deposit();
    expect(within).toEqual([{ auto: 0, idle: 15 }]);
    expect(await settings()).toEqual(before);
  });

  it("leaves no transaction open in a pool without autocommit, after the start and after pruning", async () => {
    const plain = createPool({ uri: server.url, connectionLimit: 1 });
    onTestFinished(() => plain.end());
    await plain.query("SET autocommit = 0");
    const effects = mysqlEffects(plain);
    // The table may show a transaction for a moment longer that has just ended. One that is left open stays.
    const expectNoneOpen = (): Promise<void> =>
      expect
        .poll(async () => (await pool.query("SELECT trx_state FROM information_schema.innodb_trx"))[0])
        .toEqual([]);
    await effects.open();
    await expectNoneOpen();
    await pool.query(
      "INSERT INTO payhooks_effects (id, at, done) VALUES ('old', NOW() - INTERVAL 402 DAY, TRUE)",
    );
    expect(await effects.prune()).toBe(false);
    await expectNoneOpen();
    expect((await pool.query("SELECT id FROM payhooks_effects"))[0]).toEqual([]);
  });

  it("neither sees nor commits what the program has left open on a connection of the pool", async () => {
    await pool.end();
    pool = createPool({ uri: server.url, connectionLimit: 1 });
    const other = createPool(server.url);
    onTestFinished(() => other.end());
    let seen: unknown;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          [seen] = await tx.query("SELECT paid FROM orders WHERE reference = 'order-2'");
          await tx.query(PAY);
        }),
      ),
    );
    const forgetful = await pool.getConnection();
    await forgetful.beginTransaction();
    await forgetful.query("SELECT * FROM orders");
    await forgetful.query("INSERT INTO orders VALUES ('abandoned', 1)");
    forgetful.release();
    await other.query("UPDATE orders SET paid = 5 WHERE reference = 'order-2'");
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
    expect(seen).toEqual([{ paid: 5 }]);
    expect(await timesPaid()).toEqual([1, 5]);
  });

  it("waits for a server that accepts no writes, which uses up no attempt", async () => {
    let calls = 0;
    const user = createPool(server.url.replace("root@", "till:right@"));
    await pool.query("CREATE USER IF NOT EXISTS till@localhost IDENTIFIED BY 'right'");
    await pool.query("GRANT ALL ON shop.* TO till@localhost");
    const t = await harnessOf(mysqlEffects(user), (receiver) =>
      receiver.onDeposit(
        (_, ctx) =>
          ctx.transaction(async (tx) => {
            calls++;
            await tx.query(PAY);
          }),
        { maxAttempts: 1 },
      ),
    );
    await pool.query("SET GLOBAL read_only = 1");
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    await t.advance("2m");
    expect(calls).toBe(0);
    await pool.query("SET GLOBAL read_only = 0");
    await t.advance("2m");
    expect([calls, await timesPaid()]).toEqual([1, [1, 0]]);
    await t.close();
    await user.end();
  });

  it("pays once though the connection is ended in the middle, at the next attempt", async () => {
    let calls = 0;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query(PAY);
          if (++calls === 1) await pool.query(`KILL ${tx.threadId}`);
        }),
      ),
    );
    await t.deposit();
    await t.advance("1m");
    expect([calls, await timesPaid(), await t.held()]).toEqual([2, [1, 0], []]);
  });

  it("rolls back when it is aborted, in the middle of a statement too", async () => {
    const effects = mysqlEffects(pool);
    await effects.open();
    const stop = new AbortController();
    const now = Date.now();
    const run = { effectId: "one", receivedAt: now, now, evenIfExpired: false, onSkipped: () => {} };
    const { methods } = effects.forRun({ ...run, signal: stop.signal });
    const ended = methods.transaction(async (tx) => {
      await tx.query(PAY);
      setTimeout(() => stop.abort(new Error("time is up")), 200);
      await tx.query("SELECT SLEEP(6)");
    });
    await expect(ended).rejects.toThrow("time is up");
    // The locks go when the server notices that nobody waits for the statement.
    await pool.query("UPDATE orders SET paid = paid + 10 WHERE reference = 'order-1'");
    expect(await timesPaid()).toEqual([10, 0]);
  });

  const TABLE = "CREATE TABLE payhooks_effects";
  const COLUMNS = "at DATETIME NOT NULL, done BOOLEAN NOT NULL";
  it.each([
    ["cannot be rolled back", `${TABLE} (id VARBINARY(255) PRIMARY KEY, ${COLUMNS}) ENGINE = MyISAM`],
    [
      "differ in case",
      `${TABLE} (id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, ${COLUMNS})`,
    ],
    [
      "not as effects need it",
      `${TABLE} (id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, ${COLUMNS})`,
    ],
    [
      "lacks a column",
      `${TABLE} (id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, at DATETIME NOT NULL)`,
    ],
    ["is missing", ""],
  ])("refuses a table that %s", async (said, sql) => {
    if (sql !== "") await pool.query(sql);
    await expect(mysqlEffects(pool, { createTable: false }).open()).rejects.toMatchObject({
      code: "ERR_EFFECTS_UNSUITABLE",
      message: expect.stringContaining(said),
    });
  });

  it.each(["SELECT", "INSERT", "UPDATE", "DELETE"])("says that the user lacks %s", async (missing) => {
    await mysqlEffects(pool).open();
    const rights = ["SELECT", "INSERT", "UPDATE", "DELETE"].filter((one) => one !== missing);
    await pool.query("DROP USER IF EXISTS poor@localhost");
    await pool.query("CREATE USER poor@localhost IDENTIFIED BY 'right'");
    await pool.query(`GRANT ${rights.join(", ")} ON shop.payhooks_effects TO poor@localhost`);
    const poor = createPool(server.url.replace("root@", "poor:right@"));
    await expect(mysqlEffects(poor).open()).rejects.toMatchObject({
      code: "ERR_EFFECTS_UNSUITABLE",
      message: expect.stringContaining("GRANT SELECT, INSERT, UPDATE, DELETE ON payhooks_effects"),
    });
    await poor.end();
  });

  it.each([
    ["a wrong password", "root@", "till:wrong@", "ERR_EFFECTS_UNSUITABLE"],
    ["a database that does not exist", "/shop", "/nowhere", "ERR_EFFECTS_UNSUITABLE"],
    ["a server that is away", /:\d+\//, ":1/", "ERR_EFFECTS_UNAVAILABLE"],
  ])("tells %s", async (_, from, to, code) => {
    const wrong = createPool(server.url.replace(from, to));
    await expect(mysqlEffects(wrong).open()).rejects.toMatchObject({ code });
    await wrong.end();
  });

  it("refuses a pool that takes callbacks, and takes its promises", async () => {
    const callbacks = createCallbackPool(server.url);
    expect(() => mysqlEffects(callbacks as never)).toThrow("pool.promise()");
    await mysqlEffects(callbacks.promise()).open();
    await callbacks.promise().end();
  });
});
