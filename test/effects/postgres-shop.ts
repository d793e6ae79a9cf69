/** A shop on a PostgreSQL of a test's own, for the tests of effects with each client. */
import type { EffectContext, Receiver } from "@payhooks/core";
import { createHarness, createTestKeys, type Harness, type HarnessDelivery } from "@payhooks/core/testing";
import { Pool } from "pg";
import { PostgresServer, type ServerOptions } from "../faults/harness/postgres-server.ts";
import { Scope, until } from "../faults/harness/scope.ts";
import type { Client, ClientKind } from "./postgres-clients.ts";

export type Context = EffectContext<unknown>;
export type EffectsGiven = Parameters<Client["effects"]>[0];

/** Pays the order. */
export const PAY = "UPDATE orders SET paid = paid + 1 WHERE reference = 'order-1'";

/** The server, its orders, and one client at a time. */
export class PostgresShop {
  readonly server: PostgresServer;
  /** Connections of the test's own. */
  readonly admin: Pool;
  readonly #scope: Scope;
  readonly #keys = createTestKeys();
  readonly #open: { close(): Promise<unknown> }[] = [];

  private constructor(scope: Scope, server: PostgresServer) {
    this.#scope = scope;
    this.server = server;
    this.admin = new Pool({ connectionString: server.url });
    this.admin.on("error", () => {});
  }

  static async start(options?: ServerOptions): Promise<PostgresShop> {
    const scope = new Scope();
    return new PostgresShop(scope, await PostgresServer.start(scope, options));
  }

  async stop(): Promise<void> {
    await this.admin.end();
    // A transaction that a closed receiver has left behind may still be on its way, and its client hears no error yet.
    await until("all connections are closed", async () => {
      const others = "backend_type = 'client backend' AND pid <> pg_backend_pid()";
      return (await this.server.tell(`SELECT 1 FROM pg_stat_activity WHERE ${others}`)).length === 0;
    });
    await this.#scope.close();
  }

  /** Fresh tables. */
  async reset(): Promise<void> {
    await this.admin.query("DROP TABLE IF EXISTS payhooks_effects, items, orders CASCADE");
    await this.admin.query(`CREATE TABLE orders (reference text PRIMARY KEY, paid integer NOT NULL DEFAULT 0);
      INSERT INTO orders (reference) VALUES ('order-1'), ('order-2')`);
  }

  /** A client, until the end of the test. */
  async client({ open }: ClientKind, url: string = this.server.url): Promise<Client> {
    const client = await open(url);
    this.#open.unshift(client);
    return client;
  }

  /** A receiver with effects through the client, until the end of the test. */
  async harness(
    client: Client,
    register: (receiver: Receiver<Context>) => unknown,
    options: EffectsGiven = {},
  ): Promise<Harness> {
    const receiver = { effects: client.effects(options) };
    const t = await createHarness({ register, keys: this.#keys, receiver });
    this.#open.unshift(t);
    return t;
  }

  /** A delivery of a deposit that no receiver of the test has had. */
  async sent(): Promise<HarnessDelivery> {
    const elsewhere = await createHarness({
      keys: this.#keys,
      register: (receiver) => receiver.onDeposit(() => {}),
    });
    const delivery = await elsewhere.deposit();
    await elsewhere.close();
    return delivery;
  }

  /** Closes what the test has opened, receivers before their clients. */
  async close(): Promise<void> {
    for (const one of this.#open.splice(0)) await one.close();
  }

  async timesPaid(): Promise<unknown> {
    return (await this.admin.query("SELECT paid FROM orders WHERE reference = 'order-1'")).rows[0]?.paid;
  }

  async ids(): Promise<readonly unknown[]> {
    return (await this.admin.query("SELECT id FROM payhooks_effects ORDER BY id")).rows.map(({ id }) => id);
  }

  /**
   * Ends every connection to the server but the test's own. Their clients know it afterwards: the server has said so on each before
   * it answers here. Drizzle would never give back a connection of node-postgres on which its BEGIN fails.
   */
  async endConnections(): Promise<void> {
    await this.admin.query(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`);
  }
}

/** The errors of failed attempts. */
export function errorsOf({ notices }: Harness): readonly string[] {
  return notices.flatMap((notice) =>
    notice.type === "retry" || notice.type === "given-up" ? [notice.error] : [],
  );
}
