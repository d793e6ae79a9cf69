/** Effects in SQLite, through libsql. The runtimes' own drivers, and better-sqlite3, are in test/runtimes. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { removeFolder } from "../../../../test/support/remove-folder.ts";
import type { EffectContext } from "../../src/effects/index.ts";
import { type SqliteEffectsOptions, sqliteEffects } from "../../src/effects/sqlite.ts";
import type { Receiver } from "../../src/index.ts";
import { sqliteInbox } from "../../src/sqlite/index.ts";
import { createHarness, createTestKeys, type Harness } from "../../src/testing/index.ts";

const keys = createTestKeys();
const PAY = "UPDATE orders SET paid = paid + 1 WHERE reference = 'order-1'";

type Context = EffectContext<Database.Database, true>;

let folder: string;
let db: Database.Database;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "payhooks-effects-"));
  db = new Database(join(folder, "shop.db"));
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE orders (reference TEXT PRIMARY KEY, paid INTEGER)");
  db.exec("INSERT INTO orders VALUES ('order-1', 0)");
});
afterEach(() => {
  db.close();
  removeFolder(folder);
});

const harness = (
  register: (receiver: Receiver<Context>) => unknown,
  options: SqliteEffectsOptions = {},
): Promise<Harness> => createHarness({ register, keys, receiver: { effects: sqliteEffects(db, options) } });
const timesPaid = (): unknown => (db.prepare("SELECT paid FROM orders").get() as { paid: number }).paid;
const ids = (): readonly unknown[] =>
  (db.prepare("SELECT id FROM payhooks_effects ORDER BY id").all() as { id: string }[]).map(({ id }) => id);
const errorsOf = ({ notices }: Harness): readonly string[] =>
  notices.flatMap((notice) => (notice.type === "retry" ? [notice.error] : []));

describe("effects in SQLite", () => {
  it("happen once, although the process dies right after the commit", async () => {
    const ran: boolean[] = [];
    const t = await harness((receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        const { ran: one } = await ctx.transaction((tx) => tx.prepare(PAY).run());
        ran.push(one);
      }),
    );
    const delivery = await t.deposit();
    await t.crashAfter("deposit", delivery);
    expect(ran).toEqual([true, false]);
    expect(timesPaid()).toBe(1);
    expect(ids()).toEqual([`${delivery.eventId}.deposit`]);
  });

  it("refuse an async function, by type and before it is called", async () => {
    let isCalled = false;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        // @ts-expect-error A handle is one connection: an async function lets other code into its transaction.
        ctx.transaction(async (tx) => {
          isCalled = true;
          tx.exec(PAY);
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(errorsOf(t)).toEqual([expect.stringContaining("The function of ctx.transaction is async")]);
    expect(isCalled).toBe(false);
    expect(timesPaid()).toBe(0);
  });

  it("refuse a function that returns a promise, and roll back what it has done", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          tx.exec(PAY);
          return Promise.resolve() as unknown as undefined;
        }),
      ),
    );
    await t.deposit();
    expect(errorsOf(t)).toEqual([expect.stringContaining("is async, but the database is synchronous")]);
    expect(timesPaid()).toBe(0);
  });

  it("refuse a claim of the effect that their transaction is of", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          tx.exec(PAY);
          ctx.claimEffect(tx);
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(errorsOf(t)).toEqual([expect.stringContaining("used one effect twice")]);
    expect(timesPaid()).toBe(0);
  });

  it("roll back what throws, and the next attempt pays", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          tx.exec(PAY);
          if (ctx.attempt === 1) tx.exec("no such statement");
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(timesPaid()).toBe(0);
    await t.advance("1m");
    expect(timesPaid()).toBe(1);
  });

  it.each([
    ["COMMIT"],
    ["ROLLBACK"],
    ["COMMIT", "BEGIN", PAY],
    ["ROLLBACK", "BEGIN", PAY],
    ["COMMIT", "throw"],
    ["ROLLBACK", PAY, "throw"],
    ["COMMIT", "BEGIN", PAY, "throw"],
    ["COMMIT", PAY, "SELECT no_such_function()"],
    ["COMMIT", "BEGIN", "SELECT no_such_function()"],
    // SQLite rolls back by itself, and what comes after the caught error is committed at once.
    ["caught", PAY],
    ["caught", PAY, "throw"],
  ])("hold the event, and call nothing again, after %s %s %s %s", async (...statements) => {
    let calls = 0;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          calls++;
          for (const sql of statements) {
            if (sql === "throw") throw new Error("closed on Sundays");
            if (sql !== "caught") tx.exec(sql);
            else expect(() => tx.exec("INSERT OR ROLLBACK INTO orders VALUES ('order-1', 0)")).toThrow();
          }
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "held" });
    expect(await t.held()).toMatchObject([
      { reason: "rejected", detail: expect.stringContaining("has committed or rolled back the transaction") },
    ]);
    await t.advance("2h");
    expect(calls).toBe(1);
    expect(timesPaid()).toBeLessThanOrEqual(1);
    expect(t.notices.filter(({ type }) => type === "effect-skipped")).toEqual([]);
    // The handle is free again.
    db.exec("BEGIN; COMMIT");
  });

  it.each([
    ["SQLite rolls back by itself", "INSERT OR ROLLBACK INTO orders VALUES ('order-1', 0)"],
    ["a deferred constraint fails at the commit", "INSERT INTO items VALUES ('no such order')"],
  ])("are tried again if %s", async (_, wrong) => {
    db.exec(`PRAGMA foreign_keys = ON; CREATE TABLE items
      (reference TEXT REFERENCES orders (reference) DEFERRABLE INITIALLY DEFERRED)`);
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          tx.exec(PAY);
          if (ctx.attempt === 1) tx.exec(wrong);
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect([timesPaid(), ids()]).toEqual([0, []]);
    await t.advance("1m");
    expect(timesPaid()).toBe(1);
  });

  it("keep what a savepoint of the function keeps", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          tx.exec(`SAVEPOINT a; ${PAY}; ROLLBACK TO a; SAVEPOINT b; ${PAY}`);
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
    expect(timesPaid()).toBe(1);
  });

  it("give a handle that throws after the end of its transaction", async () => {
    let kept: Database.Database | null = null;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          kept = tx;
        }),
      ),
    );
    await t.deposit();
    expect(() => kept?.exec(PAY)).toThrow(expect.objectContaining({ code: "ERR_EFFECT_TRANSACTION" }));
  });

  it("are claimed at once in a transaction that the merchant has opened", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        db.transaction(() => {
          if (ctx.claimEffect(db)) db.exec(PAY);
        })(),
      ),
    );
    await t.crashAfter("deposit", await t.deposit());
    expect(timesPaid()).toBe(1);
  });

  it("do not go into a transaction that somebody else has open on the handle", async () => {
    const t = await harness((receiver) => receiver.onDeposit((_, ctx) => ctx.transaction(() => {})));
    db.exec("BEGIN");
    await t.deposit();
    expect(errorsOf(t)).toEqual([expect.stringContaining("The handle is in a transaction already")]);
    db.exec("COMMIT");
    await t.advance("1m");
    expect(ids()).toHaveLength(1);
  });

  it("wait for another process that writes, and count it as no attempt", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction((tx) => tx.exec(PAY)), { maxAttempts: 1 }),
    );
    const other = new Database(join(folder, "shop.db"));
    other.exec("BEGIN IMMEDIATE");
    const delivering = t.deposit();
    setTimeout(() => other.exec("COMMIT"), 100);
    expect(await delivering).toMatchObject({ outcome: "done" });
    other.close();
    expect(timesPaid()).toBe(1);
  });

  it("are refused in the inbox's own file", async () => {
    const file = join(folder, "inbox.db");
    const inbox = sqliteInbox(file);
    await inbox.ready();
    const handle = new Database(file);
    await expect(sqliteEffects(handle).open()).rejects.toMatchObject({ code: "ERR_EFFECTS_UNSUITABLE" });
    handle.close();
    await inbox.close({ graceMs: 0 });
  });

  it.each([
    [
      "a trigger swallows the id",
      "CREATE TRIGGER t BEFORE INSERT ON payhooks_effects BEGIN SELECT RAISE(IGNORE); END",
    ],
    [
      "a trigger swallows its end",
      "CREATE TRIGGER t BEFORE UPDATE ON payhooks_effects BEGIN SELECT RAISE(IGNORE); END",
    ],
    [
      "a trigger refuses",
      "CREATE TRIGGER t BEFORE INSERT ON payhooks_effects BEGIN SELECT RAISE(ABORT, 'no'); END",
    ],
    [
      "a column is missing",
      "DROP TABLE payhooks_effects; CREATE TABLE payhooks_effects (id TEXT PRIMARY KEY, at INTEGER)",
    ],
    [
      "ids are compared without their case",
      "DROP TABLE payhooks_effects; CREATE TABLE payhooks_effects (id TEXT PRIMARY KEY COLLATE NOCASE, at INTEGER, done INTEGER)",
    ],
    ["the file is read-only", "PRAGMA query_only = ON"],
  ])("are refused at the start if %s", async (_, sql) => {
    await sqliteEffects(db).open();
    db.exec(sql);
    await expect(sqliteEffects(db).open()).rejects.toMatchObject({ code: "ERR_EFFECTS_UNSUITABLE" });
    expect(timesPaid()).toBe(0);
  });

  it("leave nothing behind at the start", async () => {
    await sqliteEffects(db, { table: "main.shop_effects" }).open();
    expect(db.prepare("SELECT count(*) AS n FROM shop_effects").get()).toMatchObject({ n: 0 });
  });

  it("wait for a file that accepts no writes, and count it as no attempt", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction((tx) => tx.exec(PAY)), { maxAttempts: 1 }),
    );
    db.exec("PRAGMA query_only = ON");
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    await t.advance("2m");
    expect(await t.held()).toEqual([]);
    db.exec("PRAGMA query_only = OFF");
    await t.advance("1m");
    expect(timesPaid()).toBe(1);
  });

  it("are forgotten after keepMs, in steps of 1,000", async () => {
    const effects = sqliteEffects(db, { keepMs: 10 * 86_400_000 });
    await effects.open();
    const insert = db.prepare("INSERT INTO payhooks_effects (id, at) VALUES (?, ?)");
    const daysAgo = (days: number): number => Date.now() - days * 86_400_000;
    db.exec("BEGIN");
    for (let n = 0; n < 1_500; n++) insert.run(`old-${n}`, daysAgo(12));
    db.exec("COMMIT");
    insert.run("young", daysAgo(9));
    expect(await effects.prune()).toBe(true);
    expect(await effects.prune()).toBe(false);
    expect(ids()).toEqual(["young"]);
  });
});
