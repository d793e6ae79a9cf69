/**
 * A database that accepts no writes for a while, as after a failover or on a full disk, and connections that keep to that when it is
 * over. Events wait, which uses up no attempt. A client that effects hold has no such connection for long.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CLIENTS, type Client } from "./postgres-clients.ts";
import { errorsOf, PAY, PostgresShop } from "./postgres-shop.ts";

/** As many as the clients of the tests keep. */
const CONNECTIONS = 4;

let shop: PostgresShop;

beforeAll(async () => {
  shop = await PostgresShop.start();
});
afterAll(() => shop.stop());

describe.each(CLIENTS)("through $name", { timeout: 60_000 }, (kind) => {
  let client: Client;

  beforeEach(async () => {
    await shop.reset();
    client = await shop.client(kind);
  });
  afterEach(async () => {
    await shop.close();
    await shop.admin.query("ALTER DATABASE postgres RESET default_transaction_read_only");
  });

  /** Every connection of the client is one that accepts no writes; the server accepts them again by then. */
  async function keepsToReadOnly(): Promise<void> {
    await shop.admin.query("ALTER DATABASE postgres SET default_transaction_read_only = on");
    await shop.endConnections();
    const all = Array.from({ length: CONNECTIONS }, () =>
      client.transaction(async (tx) => void (await client.run(tx, "SELECT pg_sleep(0.2)::text"))),
    );
    // Some clients find only now that their connections are gone.
    await Promise.allSettled(all);
    await Promise.all(
      Array.from({ length: CONNECTIONS }, () =>
        client.transaction(async (tx) => void (await client.run(tx, "SELECT pg_sleep(0.2)::text"))),
      ),
    );
    await shop.admin.query("ALTER DATABASE postgres RESET default_transaction_read_only");
  }

  it("waits for a database that accepts no writes, says why, and pays at its first attempt", async () => {
    let calls = 0;
    const t = await shop.harness(client, (receiver) =>
      receiver.onDeposit(
        (_, ctx) =>
          ctx.transaction(async (tx) => {
            calls++;
            await client.run(tx, PAY);
          }),
        { maxAttempts: 1 },
      ),
    );
    await shop.admin.query("ALTER DATABASE postgres SET default_transaction_read_only = on");
    await shop.endConnections();
    expect(await t.deposit()).toMatchObject({ outcome: "retrying" });
    await t.advance("5m");
    expect(errorsOf(t).length).toBeGreaterThan(5);
    expect(new Set(errorsOf(t).slice(1))).toEqual(
      new Set([expect.stringContaining("accepts no writes now")]),
    );
    expect(calls).toBe(0);
    await shop.admin.query("ALTER DATABASE postgres RESET default_transaction_read_only");
    await shop.endConnections();
    await t.advance("5m");
    expect(await t.held()).toEqual([]);
    expect([calls, await shop.timesPaid()]).toEqual([1, 1]);
  });

  it.runIf(kind.discards)("throws away connections that keep to it when it is over", async () => {
    const t = await shop.harness(client, (receiver) =>
      receiver.onDeposit((_, ctx) => ctx.transaction(async (tx) => void (await client.run(tx, PAY))), {
        maxAttempts: 1,
      }),
    );
    await keepsToReadOnly();
    await t.deposit();
    // Each try finds one of them.
    for (let tries = 0; tries < CONNECTIONS; tries++) await t.advance("1m");
    expect(await shop.timesPaid()).toBe(1);
    await Promise.all(
      Array.from({ length: CONNECTIONS }, () =>
        client.transaction(async (tx) => {
          await client.run(tx, "SELECT pg_sleep(0.1)::text");
          await client.run(tx, PAY);
        }),
      ),
    );
    expect(await shop.timesPaid()).toBe(1 + CONNECTIONS);
  });

  it("starts while it accepts no writes, with a warning that says so", async () => {
    await client.effects().open();
    await shop.admin.query("ALTER DATABASE postgres SET default_transaction_read_only = on");
    await shop.endConnections();
    const runs: Promise<unknown>[] = [];
    const t = await shop.harness(client, (receiver) =>
      receiver.onDeposit(async (_, ctx) => {
        const run = ctx.transaction(async (tx) => void (await client.run(tx, PAY)));
        runs.push(run);
        await run;
      }),
    );
    await t.deposit();
    await Promise.allSettled(runs);
    expect(t.notices).toContainEqual(
      expect.objectContaining({
        type: "warning",
        what: expect.stringMatching(/accepts no writes now|CONNECTION_/),
      }),
    );
  });
});
