/** Any value thrown by the function of ctx.transaction is a failed attempt: nothing is committed, and the next one pays. */
import Database from "libsql";
import { describe, expect, it, onTestFinished } from "vitest";
import { HOSTILE } from "../../../../test/support/hostile-values.ts";
import { sqliteEffects } from "../../src/effects/sqlite.ts";
import { lineOfThrown } from "../../src/notices/thrown.ts";
import { createHarness, createTestKeys, type Harness } from "../../src/testing/index.ts";
import { MapDatabase } from "./map-database.ts";

const keys = createTestKeys();

const errorsOf = ({ notices }: Harness): readonly string[] =>
  notices.flatMap((notice) => (notice.type === "retry" ? [notice.error] : []));

describe.each(Object.entries(HOSTILE))("%s", (_, make) => {
  it.each(["throws", "rejects with"])("that the function of an own client %s", async (way) => {
    const database = new MapDatabase();
    let calls = 0;
    const t = await createHarness({
      keys,
      receiver: { effects: database.effects() },
      register: (receiver) =>
        receiver.onDeposit((_, ctx) =>
          ctx.transaction((tx) => {
            tx.add("cash", 10);
            if (++calls > 1) return;
            if (way === "throws") throw make();
            return Promise.reject(make());
          }),
        ),
    });
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(errorsOf(t)).toEqual([lineOfThrown(make())]);
    expect([database.rolledBack, database.ids.size]).toEqual([1, 0]);
    await t.advance("1m");
    expect([calls, database.accounts.get("cash")]).toEqual([2, 10]);
    await t.close();
  });

  it("that the function of a SQLite handle throws", async () => {
    const db = new Database(":memory:");
    onTestFinished(() => void db.close());
    db.exec("CREATE TABLE paid (reference TEXT)");
    let calls = 0;
    const t = await createHarness({
      keys,
      receiver: { effects: sqliteEffects(db) },
      register: (receiver) =>
        receiver.onDeposit((_, ctx) =>
          ctx.transaction((tx) => {
            tx.prepare("INSERT INTO paid VALUES ('order-1')").run();
            if (++calls === 1) throw make();
          }),
        ),
    });
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(errorsOf(t)).toEqual([lineOfThrown(make())]);
    await t.advance("1m");
    expect(calls).toBe(2);
    expect(db.prepare("SELECT count(*) AS times FROM paid").get()).toMatchObject({ times: 1 });
    await t.close();
  });

  it("that a client rejects with, before the function is called", async () => {
    const database = new MapDatabase();
    database.refusals.push(make());
    const t = await createHarness({
      keys,
      receiver: { effects: database.effects() },
      register: (receiver) => receiver.onDeposit((_, ctx) => ctx.transaction((tx) => tx.add("cash", 10))),
    });
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    await t.advance("1m");
    expect(database.accounts.get("cash")).toBe(10);
    await t.close();
  });
});
