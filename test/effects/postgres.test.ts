/** Tests the promises of exactly once, on a real PostgreSQL, with each client. docs/guides/exactly-once.md has it as a table. */
import { type EffectContext, PayhooksError, type Receiver } from "@payhooks/core";
import { createHarness, createTestKeys, type Harness } from "@payhooks/core/testing";
import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { CLIENTS, type Client } from "./postgres-clients.ts";

const keys = createTestKeys();
const PAY = "UPDATE orders SET paid = paid + 1 WHERE reference = 'order-1'";
const WRONG = "SELECT no_such_function()";

const scope = new Scope();
let server: PostgresServer;
let admin: Pool;

beforeAll(async () => {
  server = await PostgresServer.start(scope);
  admin = new Pool({ connectionString: server.url });
  admin.on("error", () => {});
});
afterAll(async () => {
  await admin.end();
  await scope.close();
});

type Context = EffectContext<unknown>;

describe.each(CLIENTS)("effects through $name", { timeout: 60_000 }, ({ open, repeatsWhenThawed }) => {
  let client: Client;
  const opened: Harness[] = [];

  beforeEach(async () => {
    await admin.query("DROP TABLE IF EXISTS payhooks_effects, orders");
    await admin.query("CREATE TABLE orders (reference text PRIMARY KEY, paid integer NOT NULL DEFAULT 0)");
    await admin.query("INSERT INTO orders (reference) VALUES ('order-1'), ('order-2')");
    client = await open(server.url);
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
    await client.close();
  });

  async function harness(
    register: (receiver: Receiver<Context>) => unknown,
    options: Parameters<Client["effects"]>[0] = {},
  ): Promise<Harness> {
    const t = await createHarness({ register, keys, receiver: { effects: client.effects(options) } });
    opened.push(t);
    return t;
  }

  const timesPaid = async (reference = "order-1"): Promise<unknown> =>
    (await admin.query("SELECT paid FROM orders WHERE reference = $1", [reference])).rows[0]?.paid;
  const ids = async (): Promise<readonly unknown[]> =>
    (await admin.query("SELECT id FROM payhooks_effects ORDER BY id")).rows.map(({ id }) => id);
  const errorsOf = ({ notices }: Harness): readonly string[] =>
    notices.flatMap((notice) =>
      notice.type === "retry" || notice.type === "given-up" ? [notice.error] : [],
    );

  it("pays once, although a delivery is repeated, and its process dies right after the commit", async () => {
    const ran: boolean[] = [];
    const t = await harness((receiver) =>
      receiver.onDeposit(async (_, ctx) =>
        ran.push((await ctx.transaction(async (tx) => void (await client.run(tx, PAY)))).ran),
      ),
    );
    const delivery = await t.deposit();
    expect(delivery).toMatchObject({ outcome: "done" });
    await t.redeliver(delivery);
    expect(await t.crashAfter("deposit", delivery)).toMatchObject({ outcome: "done" });
    expect(ran).toEqual([true, false]);
    expect(await timesPaid()).toBe(1);
    expect(await ids()).toEqual([`${delivery.eventId}.deposit`]);
    expect(t.notices).toContainEqual(expect.objectContaining({ type: "effect-skipped" }));
  });

  it("pays once when two processes run the handler at the same moment", async () => {
    let inside = 0;
    const register = (receiver: Receiver<Context>): unknown =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          inside++;
          await client.run(tx, "SELECT pg_sleep(0.1)::text");
          await client.run(tx, PAY);
        }),
      );
    const [one, other] = [await harness(register), await harness(register)];
    const elsewhere = await createHarness({ keys, register: (receiver) => receiver.onDeposit(() => {}) });
    const { sent } = await elsewhere.deposit();
    const both = await Promise.all([one, other].map((t) => t.deliver("payments", sent)));
    expect(both.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
    expect(inside).toBe(1);
    expect(await timesPaid()).toBe(1);
  });

  it("is not done with a swallowed SQL error, whose commit would be a rollback without a word", async () => {
    let isWrong = true;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await client.run(tx, PAY);
          if (isWrong) await client.run(tx, WRONG).catch(() => {});
        }),
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    expect(errorsOf(t)).toEqual([expect.stringContaining("before it could be committed")]);
    expect(await ids()).toEqual([]);
    isWrong = false;
    await t.advance("1m");
    expect(await timesPaid()).toBe(1);
  });

  it.each(["COMMIT", "ROLLBACK", "COMMIT; BEGIN"])("says so when the function does a %s", async (sql) => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          for (const one of sql.split("; ")) await client.run(tx, one);
        }),
      ),
    );
    await t.deposit();
    // postgres.js does not let anybody else begin.
    expect(errorsOf(t)).toEqual([
      expect.stringMatching(
        /has committed or rolled back the transaction|UNSAFE_TRANSACTION|Failed query: BEGIN/,
      ),
    ]);
  });

  it("rolls back what throws, and the next attempt pays", async () => {
    let isWrong = true;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await client.run(tx, PAY);
          if (isWrong) throw new PayhooksError("ERR_OPTION_INVALID", "not today");
        }),
      ),
    );
    await t.deposit();
    expect(errorsOf(t)).toEqual([expect.stringContaining("not today")]);
    expect(await timesPaid()).toBe(0);
    isWrong = false;
    await t.advance("1m");
    expect(await timesPaid()).toBe(1);
  });

  it("gives a tx that throws after its end, instead of one that is another's by then", async () => {
    let kept: unknown;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction((tx) => {
          kept = tx;
        }),
      ),
    );
    await t.deposit();
    await expect((async () => client.run(kept, PAY))()).rejects.toMatchObject({
      code: "ERR_EFFECT_TRANSACTION",
    });
    expect(await timesPaid()).toBe(0);
  });

  it.each(["40001", "40P01", "55P03"])("repeats after %s, which counts as no attempt", async (state) => {
    let calls = 0;
    const t = await harness((receiver) =>
      receiver.onDeposit(
        (_, ctx) =>
          ctx.transaction(async (tx) => {
            await client.run(tx, PAY);
            if (++calls < 3) {
              await client.run(tx, `DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '${state}'; END $$`);
            }
          }),
        { maxAttempts: 1 },
      ),
    );
    expect(await t.deposit()).toMatchObject({ outcome: "done" });
    expect(calls).toBe(3);
    expect(await timesPaid()).toBe(1);
  });

  it("repeats the loser of a deadlock", async () => {
    const register = (receiver: Receiver<Context>): unknown =>
      receiver.onDeposit(
        ({ referenceId }, ctx) =>
          ctx.transaction(async (tx) => {
            const orders = referenceId === "up" ? ["order-1", "order-2"] : ["order-2", "order-1"];
            for (const reference of orders) {
              await client.run(tx, `UPDATE orders SET paid = paid + 1 WHERE reference = '${reference}'`);
              await client.run(tx, "SELECT pg_sleep(0.2)::text");
            }
          }),
        { maxAttempts: 1 },
      );
    const each = [await harness(register), await harness(register)];
    const both = await Promise.all(each.map((t, at) => t.deposit({ referenceId: at === 0 ? "up" : "down" })));
    expect(both.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
    expect([await timesPaid("order-1"), await timesPaid("order-2")]).toEqual([2, 2]);
  });

  it("waits for a frozen holder of the same effect no longer than its idle timeout", async () => {
    const timeouts = { lockTimeoutMs: 100, idleTimeoutMs: 1_000 };
    let wake = (): void => {};
    let isIn = (): void => {};
    const inside = new Promise<void>((resolve) => {
      isIn = resolve;
    });
    const frozen = await harness(
      (receiver) =>
        receiver.onDeposit(
          (_, ctx) =>
            ctx.transaction(async (tx) => {
              await client.run(tx, PAY);
              isIn();
              await new Promise<void>((resolve) => {
                wake = resolve;
              });
            }),
          { maxAttempts: 1 },
        ),
      timeouts,
    );
    const next = await harness(
      (receiver) =>
        receiver.onDeposit((_, ctx) => ctx.transaction(async (tx) => void (await client.run(tx, PAY))), {
          maxAttempts: 1,
        }),
      timeouts,
    );
    const elsewhere = await createHarness({ keys, register: (receiver) => receiver.onDeposit(() => {}) });
    const { sent } = await elsewhere.deposit();
    const first = frozen.deliver("payments", sent);
    await inside;
    expect(await next.deliver("payments", sent)).toMatchObject({ outcome: "done" });
    expect(await timesPaid()).toBe(1);
    wake();
    expect(await first).toMatchObject({ outcome: repeatsWhenThawed ? "done" : "held" });
    expect(await timesPaid()).toBe(1);
  });

  it("rolls back at the handler's timeout, in the middle of a statement too", async () => {
    const t = await harness(
      (receiver) =>
        receiver.onDeposit(
          (_, ctx) =>
            ctx.transaction(async (tx) => {
              await client.run(tx, PAY);
              if (ctx.attempt === 1) await client.run(tx, "SELECT pg_sleep(0.5)::text");
            }),
          { timeoutMs: 1_000 },
        ),
      { lockTimeoutMs: 3_000 },
    );
    const delivering = t.deposit();
    const sleeping =
      "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(0.5)%' AND state = 'active'";
    await expect.poll(async () => (await admin.query(sleeping)).rowCount, { timeout: 10_000 }).toBe(1);
    await t.clock.advance(1_001);
    expect(await delivering).toMatchObject({ outcome: "retrying" });
    // The call ends with its statement. Until then, the handler is not called again.
    const paidLater = async (): Promise<unknown> => {
      await t.advance("1m");
      return timesPaid();
    };
    await expect.poll(paidLater, { timeout: 10_000 }).toBe(1);
  });

  it("pays once though the connection breaks in the middle of the transaction", async () => {
    let attempts = 0;
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          const [row] = await client.run(tx, "SELECT pg_backend_pid() AS pid");
          await client.run(tx, PAY);
          if (++attempts === 1) await admin.query("SELECT pg_terminate_backend($1)", [row?.pid]);
          await client.run(tx, "SELECT 1");
        }),
      ),
    );
    const delivery = await t.deposit();
    if (delivery.outcome === "retrying") await t.advance("1m");
    expect(attempts).toBe(2);
    expect(await timesPaid()).toBe(1);
  });

  it("claims in a transaction that the merchant has opened", async () => {
    const claims: boolean[] = [];
    const t = await harness((receiver) =>
      receiver.onDeposit((_, ctx) =>
        client.transaction(async (tx) => {
          const isNew = await ctx.claimEffect(tx);
          claims.push(isNew);
          if (isNew) await client.run(tx, PAY);
        }),
      ),
    );
    await t.crashAfter("deposit", await t.deposit());
    expect(claims).toEqual([true, false]);
    expect(await timesPaid()).toBe(1);
  });

  it("keeps the ids of two receivers apart by their scopes", async () => {
    const register = (receiver: Receiver<Context>): unknown =>
      receiver.onDeposit((_, ctx) => ctx.transaction(async (tx) => void (await client.run(tx, PAY))));
    const shop = await harness(register, { scope: "shop" });
    const books = await harness(register, { scope: "books" });
    const { sent, eventId } = await shop.deposit();
    await books.deliver("payments", sent);
    expect(await timesPaid()).toBe(2);
    expect(await ids()).toEqual([`books/${eventId}.deposit`, `shop/${eventId}.deposit`]);
  });

  it("makes its table once, however many processes start at the same moment", async () => {
    await Promise.all(Array.from({ length: 4 }, () => client.effects().open()));
    expect(await ids()).toEqual([]);
  });

  it("says what to run where the table is missing and not to be made", async () => {
    const effects = client.effects({ createTable: false, table: "shop_effects" });
    await expect(effects.open()).rejects.toMatchObject({
      code: "ERR_EFFECTS_UNSUITABLE",
      message: expect.stringContaining("CREATE TABLE IF NOT EXISTS shop_effects"),
    });
  });

  it("forgets what is older than keepMs, in steps of 1,000", async () => {
    const effects = client.effects({ keepMs: 10 * 86_400_000 });
    await effects.open();
    await admin.query(`INSERT INTO payhooks_effects (id, at)
      SELECT 'old-' || n, now() - interval '12 days' FROM generate_series(1, 1500) AS n`);
    await admin.query("INSERT INTO payhooks_effects (id, at) VALUES ('young', now() - interval '9 days')");
    expect(await effects.prune()).toBe(true);
    expect(await effects.prune()).toBe(false);
    expect(await ids()).toEqual(["young"]);
  });
});
