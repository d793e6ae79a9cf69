/** Effects through any SQLite handle: what a driver must do for them. */
import { sqliteEffects } from "@payhooks/core/effects/sqlite";
import type { SqliteHandle } from "@payhooks/core/sqlite";
import { createHarness, createTestKeys } from "@payhooks/core/testing";

const PAY = "UPDATE orders SET paid = paid + 1";

/** Runs without a test runner: it throws what is wrong. */
export async function effectsHappenOnce(open: (file: string) => SqliteHandle): Promise<void> {
  const db = open(":memory:");
  db.exec("CREATE TABLE orders (paid INTEGER); INSERT INTO orders VALUES (0)");
  const keys = createTestKeys();
  let isFirst = true;
  let ends = false;
  const t = await createHarness({
    keys,
    receiver: { effects: sqliteEffects(db) },
    register: (receiver) =>
      receiver
        .onDeposit((_, ctx) => ctx.transaction((tx) => void tx.exec(PAY)))
        .onWithdrawal((_, ctx) =>
          ctx.transaction((tx) => {
            if (ends) tx.exec("ROLLBACK");
            else tx.exec(PAY);
            if (isFirst) {
              isFirst = false;
              throw new Error("the ledger is closed");
            }
          }),
        ),
  });
  await t.crashAfter("deposit", await t.deposit());
  check("paid once, though the process died behind the commit", timesPaid(db), 1);
  await t.withdrawal();
  check("not done where the function has thrown", timesPaid(db), 1);
  await t.advance("1m");
  check("paid by the next attempt", timesPaid(db), 2);
  ends = true;
  await t.withdrawal();
  check("nothing is paid where the function has rolled back", timesPaid(db), 2);
  const held = (await t.held()).filter(({ reason }) => reason === "rejected").length;
  check("a person is asked about that one", held, 1);
  const skipped = t.notices.filter(({ type }) => type === "effect-skipped").length;
  check("one effect was left out", skipped, 1);
  await t.close();
  db.close();
}

function timesPaid(db: SqliteHandle): number {
  const statement = db.prepare("SELECT paid FROM orders") as { get(): { readonly paid: number } };
  return Number(statement.get().paid);
}

function check(what: string, found: number, expected: number): void {
  if (found !== expected) throw new Error(`${what}: ${found} instead of ${expected}`);
}
