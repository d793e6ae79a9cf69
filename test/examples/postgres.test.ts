/** The recipe of docs/guides/exactly-once.md, on a real PostgreSQL: an effect that happens exactly once. */
import { memoryInbox } from "@payhooks/core";
import {
  callbackFields,
  createHarness,
  createTestKeys,
  type Harness,
  signPaymentCallback,
} from "@payhooks/core/testing";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { payingReceiver } from "../../examples/postgres/src/exactly-once.ts";
import { openPool, payOrders } from "../../examples/postgres/src/pay-orders.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";

const keys = createTestKeys();
const scope = new Scope();
let server: PostgresServer;
let pool: pg.Pool;

beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

beforeEach(async () => {
  pool = openPool(server.url);
  await pool.query(`
    DROP TABLE IF EXISTS effects, payhooks_effects, orders;
    CREATE TABLE effects (id text PRIMARY KEY);
    CREATE TABLE orders (reference text PRIMARY KEY, amount numeric, paid boolean, times integer DEFAULT 0);
    CREATE OR REPLACE FUNCTION count_times() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN NEW.times := OLD.times + 1; RETURN NEW; END $$;
    CREATE TRIGGER counted BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION count_times();
  `);
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await pool.end();
});

const harness = (): Promise<Harness> =>
  createHarness({ register: (receiver) => payOrders(receiver, pool), keys });
const order = (reference: string, amount: string): Promise<unknown> =>
  pool.query("INSERT INTO orders (reference, amount, paid) VALUES ($1, $2, false)", [reference, amount]);
const rows = async (sql: string): Promise<readonly unknown[]> => (await pool.query(sql)).rows;
const timesPaid = (): Promise<readonly unknown[]> => rows("SELECT reference, paid, times FROM orders");

describe("the receiver of the README", { timeout: 30_000 }, () => {
  it("pays an order once, though another process has its delivery too", async () => {
    vi.stubEnv("PAY_PUBLIC_KEY", keys.publicKey);
    await order("order-1", "10.50");
    const { headers, rawBody } = signPaymentCallback(
      callbackFields({ referenceId: "order-1" }),
      keys.privateKey,
    );
    for (const receiver of [payingReceiver(pool, memoryInbox()), payingReceiver(pool, memoryInbox())]) {
      await receiver.start();
      const get = (name: string): string | null => headers[name] ?? null;
      const delivery = { method: "POST", url: "/", headers: { get }, rawBody };
      expect(await receiver.payments.receive(delivery)).toMatchObject({ status: 200 });
      expect(await receiver.close()).toEqual({ unfinished: 0 });
    }
    expect(await timesPaid()).toEqual([{ reference: "order-1", paid: true, times: 1 }]);
  });
});

describe("the recipe for PostgreSQL", { timeout: 30_000 }, () => {
  it("pays an order once, though its delivery is repeated and its handler runs again after a crash", async () => {
    await order("order-1", "10.50");
    const t = await harness();
    const delivery = await t.deposit({ referenceId: "order-1", amount: "10.500000" });
    expect(delivery).toMatchObject({ outcome: "done", ran: ["deposit"] });
    await t.redeliver(delivery);
    expect(await t.crashAfter("deposit", delivery)).toMatchObject({ outcome: "done", ran: ["deposit"] });
    expect(await timesPaid()).toEqual([{ reference: "order-1", paid: true, times: 1 }]);
    expect(await rows("SELECT id FROM effects")).toEqual([{ id: `${delivery.eventId}.deposit` }]);
  });

  it("pays it once when two processes run the handler at the same moment", async () => {
    await order("order-1", "10.50");
    const [one, other] = [await harness(), await harness()];
    // The same bytes have the same effectId, wherever they are handled.
    const elsewhere = createHarness({ register: (receiver) => receiver.onDeposit(() => {}), keys });
    const { sent } = await (await elsewhere).deposit({ referenceId: "order-1", amount: "10.500000" });
    const both = await Promise.all([one, other].map((t) => t.deliver("payments", sent)));
    expect(both.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
    expect(await timesPaid()).toEqual([{ reference: "order-1", paid: true, times: 1 }]);
  });

  it("stores nothing of an attempt that failed, so that the next one pays", async () => {
    const t = await harness();
    const delivery = await t.deposit({ referenceId: "order-1", amount: "10.500000" });
    expect(delivery.outcome).toBe("retrying");
    expect(t.notices).toContainEqual(
      expect.objectContaining({ type: "retry", error: "Error: no order order-1 over 10.500000" }),
    );
    expect(await rows("SELECT id FROM effects")).toEqual([]);
    await order("order-1", "10.50");
    expect(await t.advance("1m")).toEqual(["deposit"]);
    expect(await timesPaid()).toEqual([{ reference: "order-1", paid: true, times: 1 }]);
    expect({ idle: pool.idleCount, waiting: pool.waitingCount }).toEqual({
      idle: pool.totalCount,
      waiting: 0,
    });
  });

  it("goes on when its connection breaks in the middle of the transaction", async () => {
    const said = vi.spyOn(console, "error").mockReturnValue();
    await order("order-1", "10.50");
    const breaking = new Promise<void>((resolve) => {
      pool.once("acquire", (client) => {
        const query = client.query.bind(client) as (...args: readonly unknown[]) => unknown;
        Object.assign(client, {
          query: async (...args: readonly unknown[]) => {
            if (String(args[0]).startsWith("UPDATE")) {
              const { rows: found } = (await query("SELECT pg_backend_pid() AS pid")) as pg.QueryResult;
              await pool.query("SELECT pg_terminate_backend($1)", [found[0].pid]);
              resolve();
            }
            return query(...args);
          },
        });
      });
    });
    const t = await harness();
    const delivery = await t.deposit({ referenceId: "order-1", amount: "10.500000" });
    await breaking;
    expect(delivery.outcome).toBe("retrying");
    expect(said).toHaveBeenCalledWith(expect.stringMatching(/^a connection to PostgreSQL broke: /));
    expect(await t.advance("1m")).toEqual(["deposit"]);
    expect(await timesPaid()).toEqual([{ reference: "order-1", paid: true, times: 1 }]);
  });
});
