/**
 * After any value thrown by the function of ctx.transaction, each client gives its connection back, and the next attempt pays.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HOSTILE } from "../support/hostile-values.ts";
import { CLIENTS } from "./postgres-clients.ts";
import { PAY, PostgresShop } from "./postgres-shop.ts";

let shop: PostgresShop;

beforeAll(async () => {
  shop = await PostgresShop.start();
});
afterAll(() => shop.stop());

describe.each(CLIENTS)("through $name", { timeout: 60_000 }, (kind) => {
  // There are more values than connections.
  it.each(["throws", "rejects with"])(
    "what the function %s is a failed attempt like any other",
    async (way) => {
      await shop.reset();
      const client = await shop.client(kind);
      try {
        for (const [name, make] of Object.entries(HOSTILE)) {
          await shop.admin.query("UPDATE orders SET paid = 0");
          let calls = 0;
          const t = await shop.harness(client, (receiver) =>
            receiver.onDeposit((_, ctx) =>
              ctx.transaction(async (tx) => {
                await client.run(tx, PAY);
                if (++calls > 1) return;
                if (way === "throws") throw make();
                return Promise.reject(make());
              }),
            ),
          );
          expect(await t.deposit(), name).toMatchObject({ outcome: "retrying" });
          expect(await shop.timesPaid(), name).toBe(0);
          await t.advance("1m");
          expect([calls, await shop.timesPaid()], name).toEqual([2, 1]);
        }
      } finally {
        await shop.close();
      }
    },
  );
});
