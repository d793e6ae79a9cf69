/** Tests what pgEffects does with the connections of a pool: one listener while it has one, and none that stays. */
import { createServer } from "node:net";
import { pgEffects } from "@payhooks/core/effects/postgres";
import { type Client, Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { PAY, PostgresShop } from "./postgres-shop.ts";

let shop: PostgresShop;

beforeAll(async () => {
  shop = await PostgresShop.start();
});
afterAll(() => shop.stop());

/** A packet of PostgreSQL's protocol. */
function packet(type: string, body: string): Buffer {
  const bytes = Buffer.from(body, "latin1");
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(bytes.length + 4, 1);
  return Buffer.concat([head, bytes]);
}

/** A server that lets a client in, and ends it with the same bytes, as one may that shuts down. */
async function shuttingDown(): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () =>
      socket.end(
        Buffer.concat([
          packet("R", "\0\0\0\0"),
          packet("Z", "I"),
          packet("E", "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"),
        ]),
      ),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("it has no port");
  return `postgres://shop@127.0.0.1:${address.port}/shop`;
}

describe("pgEffects", () => {
  it("adds no listener to a connection that stays, however often it is used", async () => {
    await shop.reset();
    const pool = new Pool({ connectionString: shop.server.url, max: 1 });
    onTestFinished(() => pool.end());
    const counts = new Set<number>();
    pool.on("release", (_, client) => counts.add(client.listenerCount("error")));
    const client = {
      effects: () => pgEffects(pool),
      run: async () => [],
      transaction: async () => {},
      close: async () => {},
    };
    let calls = 0;
    const t = await shop.harness(client as never, (receiver) =>
      receiver.onDeposit((_, ctx) =>
        ctx.transaction(async (tx) => {
          await (tx as PoolClient).query(PAY);
          if (++calls % 2 === 1) throw new Error("no stock");
        }),
      ),
    );
    for (let deposit = 0; deposit < 12; deposit++) {
      await t.deposit();
      await t.advance("1m");
    }
    expect(await shop.timesPaid()).toBe(12);
    // The pool's own.
    expect([...counts]).toEqual([1]);
    await t.close();
  });

  it.each([
    ["a pool", (pool: Pool) => pool],
    [
      "a pool around another one that knows promises alone",
      (pool: Pool) => ({ connect: (): Promise<PoolClient> => pool.connect() }),
    ],
  ])("waits for a server that ends connections: %s", async (_, around) => {
    const pool = new Pool({ connectionString: await shuttingDown(), max: 1 });
    const lost: Error[] = [];
    pool.on("error", (error) => lost.push(error));
    // An error without a listener ends the process. A pool that knows promises alone needs one of its own.
    if (around(pool) !== pool) pool.on("connect", (client: Client) => client.on("error", () => {}));
    await expect(pgEffects(around(pool)).open()).rejects.toMatchObject({ code: "ERR_EFFECTS_UNAVAILABLE" });
    await pool.end();
  });
});
