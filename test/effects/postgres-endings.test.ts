/**
 * Code in ctx.transaction that ends the transaction, or breaks it. Either something may be committed that nobody knows of: then the
 * event is held, and the function is never called again. Or nothing can be: then it is tried again, and pays once.
 */
import type { Receiver } from "@payhooks/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CLIENTS, type Client } from "./postgres-clients.ts";
import { type Context, errorsOf, PAY, PostgresShop } from "./postgres-shop.ts";

const WRONG = "SELECT no_such_function()";
const CONFLICT = "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$";
/** Not SQL: the function catches the error of the next statement, throws, or never ends. */
const CAUGHT = "(caught)";
const THROW = "(throw)";
const HANG = "(hang)";

let shop: PostgresShop;

beforeAll(async () => {
  shop = await PostgresShop.start();
});
afterAll(() => shop.stop());

/** The statements of the function, and how often they have paid. */
const ENDINGS: readonly (readonly [paid: number, ...statements: string[]])[] = [
  [0, "COMMIT"],
  [0, "ROLLBACK"],
  [1, PAY, "COMMIT"],
  [1, PAY, "COMMIT", THROW],
  [1, "COMMIT", PAY],
  [1, "ROLLBACK", PAY, THROW],
  [0, PAY, "ROLLBACK", THROW],
  [0, "COMMIT AND CHAIN", PAY],
  [0, "COMMIT AND CHAIN", PAY, THROW],
  [1, PAY, "COMMIT AND CHAIN", CAUGHT, WRONG],
  [1, PAY, "COMMIT AND CHAIN", WRONG],
  [1, PAY, "COMMIT AND CHAIN", CONFLICT],
  [0, "ROLLBACK AND CHAIN", PAY],
  [1, "SAVEPOINT a", PAY, "COMMIT", THROW],
  [1, PAY, "COMMIT", HANG],
  // A helper with a transaction of its own.
  [1, "BEGIN", PAY, "COMMIT"],
  [1, "BEGIN", PAY, "COMMIT", THROW],
  [0, "COMMIT", "BEGIN", PAY],
  [0, "ROLLBACK", "BEGIN", PAY],
  [1, "ROLLBACK", "BEGIN", PAY, "COMMIT"],
];

/** The statements of the function at its first attempt only. All of it is rolled back. */
const FAILURES: readonly (readonly string[])[] = [
  [PAY, CAUGHT, WRONG],
  [PAY, WRONG],
  [PAY, THROW],
  [PAY, "SET TRANSACTION READ ONLY"],
  ["SAVEPOINT a", PAY, CAUGHT, WRONG],
  // A constraint that fails at the commit, and a session that ends there.
  [PAY, "INSERT INTO items VALUES ('no such order')"],
  [PAY, "INSERT INTO items VALUES ('die')"],
  [PAY, "DELETE FROM payhooks_effects"],
];

describe.each(CLIENTS)("through $name", { timeout: 60_000 }, (kind) => {
  let client: Client;

  beforeEach(async () => {
    await shop.reset();
    await shop.admin.query(`CREATE TABLE items (
        reference text REFERENCES orders (reference) DEFERRABLE INITIALLY DEFERRED);
      CREATE OR REPLACE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER die AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.reference = 'die') EXECUTE FUNCTION die();
      INSERT INTO orders (reference) VALUES ('die')`);
    client = await shop.client(kind);
  });
  afterEach(() => shop.close());

  async function run(tx: unknown, statements: readonly unknown[]): Promise<void> {
    let catches = false;
    for (const sql of statements) {
      if (sql === THROW) throw new Error("closed on Sundays");
      if (sql === HANG) await new Promise(() => {});
      if (sql === CAUGHT) catches = true;
      else if (catches) await client.run(tx, String(sql)).catch(() => {});
      else await client.run(tx, String(sql));
    }
  }

  const endings = ENDINGS.filter(([, ...statements]) => !kind.refusesBegin || !statements.includes("BEGIN"));
  it.each(endings)(
    "holds what has paid %s times, and calls nothing again: %s, %s, %s, %s",
    async (...given) => {
      const [paid, ...statements] = given;
      let calls = 0;
      let transaction: Promise<unknown> = Promise.resolve();
      const t = await shop.harness(client, (receiver) =>
        receiver.onDeposit(
          (_, ctx) => {
            transaction = ctx.transaction((tx) => {
              calls++;
              return run(tx, statements);
            });
            return transaction;
          },
          { timeoutMs: 5_000 },
        ),
      );
      const delivering = t.deposit();
      if (statements.includes(HANG)) {
        await expect.poll(() => shop.timesPaid()).toBe(paid);
        await t.clock.advance(5_001);
        // The database takes real time to answer, and two hours of this clock take none.
        await expect(transaction).rejects.toThrow("has committed or rolled back the transaction");
      }
      await delivering;
      await t.advance("2h");
      expect(calls).toBe(1);
      expect(await shop.timesPaid()).toBe(paid);
      expect(await t.held()).toMatchObject([
        {
          reason: "rejected",
          detail: expect.stringContaining("has committed or rolled back the transaction"),
        },
      ]);
      expect((await shop.admin.query("SELECT id FROM payhooks_effects WHERE done")).rows).toEqual([]);
      expect(t.notices.filter(({ type }) => type === "effect-skipped")).toEqual([]);
    },
  );

  it.each(FAILURES)("pays once, in the next attempt: %s, %s, %s, %s", async (...statements) => {
    let calls = 0;
    const t = await shop.harness(client, (receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction((tx) => run(tx, ++calls === 1 ? statements : [PAY]))),
    );
    const delivery = await t.deposit();
    // A client may repeat it at once after a lost connection.
    if (calls === 1) {
      expect(delivery).toMatchObject({ outcome: "retrying" });
      expect(await shop.timesPaid()).toBe(0);
      expect(await shop.ids()).toEqual([]);
      await t.advance("1m");
    }
    expect(await t.held()).toEqual([]);
    expect(calls).toBe(2);
    expect(await shop.timesPaid()).toBe(1);
  });

  it("keeps what a savepoint of the function keeps", async () => {
    const t = await shop.harness(client, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => run(tx, ["SAVEPOINT a", PAY, "ROLLBACK TO a", PAY, "SAVEPOINT b"])),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
    expect(await shop.timesPaid()).toBe(1);
  });

  it("pays once if every transaction is serializable, and two processes run the handler", async () => {
    await shop.admin.query("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'");
    try {
      const strict = await shop.client(kind);
      const register = (receiver: Receiver<Context>): unknown =>
        receiver.onDeposit(
          (_, ctx) => ctx.transaction((tx) => run(tx, ["SELECT pg_sleep(0.1)::text", PAY])),
          { maxAttempts: 1 },
        );
      const both = [await shop.harness(strict, register), await shop.harness(strict, register)];
      const delivery = await shop.sent();
      const ends = await Promise.all(both.map((t) => t.deliver("payments", delivery.sent)));
      expect(ends.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
      expect(await shop.timesPaid()).toBe(1);
    } finally {
      await shop.admin.query("ALTER DATABASE postgres RESET default_transaction_isolation");
    }
  });

  it.each([
    ["an id that was never completed", "false", "has committed or rolled back", 0],
    ["an effect that the inbox knows nothing of", "true", null, 0],
  ])("tells of a row that was there before: %s", async (_, done, detail, paid) => {
    const t = await shop.harness(client, (receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction((tx) => run(tx, [PAY]))),
    );
    const delivery = await shop.sent();
    await shop.admin.query("INSERT INTO payhooks_effects (id, done) VALUES ($1, $2)", [
      `${delivery.eventId}.deposit`,
      done,
    ]);
    await t.deliver("payments", delivery.sent);
    expect((await t.held()).map((entry) => entry.detail)).toEqual(
      detail === null ? [] : [expect.stringContaining(detail)],
    );
    const skipped = t.notices.flatMap((notice) =>
      notice.type === "effect-skipped" ? [notice.unexpected] : [],
    );
    expect(skipped).toEqual(detail === null ? [true] : []);
    expect(await shop.timesPaid()).toBe(paid);
  });

  it.each(["INSERT", "UPDATE"])("fails if a trigger swallows the %s of the id", async (what) => {
    const t = await shop.harness(client, (receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction((tx) => run(tx, [PAY]))),
    );
    await shop.admin.query(`CREATE OR REPLACE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RETURN NULL; END $$;
      CREATE TRIGGER quiet BEFORE ${what} ON payhooks_effects FOR EACH ROW EXECUTE FUNCTION nothing()`);
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(errorsOf(t)).toEqual([expect.stringContaining("although the statement succeeded")]);
    expect(await shop.timesPaid()).toBe(0);
    await shop.admin.query("DROP TRIGGER quiet ON payhooks_effects");
    await t.advance("1m");
    expect(await shop.timesPaid()).toBe(1);
  });
});
