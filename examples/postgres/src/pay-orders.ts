import type { Receiver } from "@payhooks/core";
import { Pool, type PoolClient } from "pg";

/** Each deposit pays its order once, however often the handler runs. */
export function payOrders(receiver: Receiver, pool: Pool): void {
  receiver.onDeposit((deposit, ctx) =>
    inTransaction(pool, async (client) => {
      const insert = "INSERT INTO effects (id) VALUES ($1) ON CONFLICT DO NOTHING";
      const { rowCount } = await client.query(insert, [ctx.effectId]);
      if (rowCount === 0) return; // an earlier run has committed: done
      const update = "UPDATE orders SET paid = true WHERE reference = $1 AND amount = $2::numeric";
      const { rowCount: paid } = await client.query(update, [deposit.referenceId, deposit.amount]);
      if (paid !== 1) throw new Error(`no order ${deposit.referenceId} over ${deposit.amount}`);
    }),
  );
}

async function inTransaction(pool: Pool, work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await work(client);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {}); // a connection that broke has rolled back already
    throw error;
  } finally {
    client.release();
  }
}

/** A pool that outlives its connections: an `error` event that nobody hears would end the process. */
export function openPool(connectionString: string | undefined): Pool {
  const pool = new Pool({ connectionString });
  const report = (error: Error): void => console.error(`a connection to PostgreSQL broke: ${error.message}`);
  pool.on("connect", (client) => client.on("error", report));
  return pool.on("error", report);
}
