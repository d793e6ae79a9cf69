/** A ledger in PostgreSQL, with `pgEffects`. */
import { pgEffects } from "@payhooks/core/effects/postgres";
import pg from "pg";
import type { Booking, LedgerDatabase } from "./ledger.ts";

/** Longer than a transaction idles here, and shorter than a process is frozen. */
const TIMEOUTS = { lockTimeoutMs: 500, idleTimeoutMs: 1_500 } as const;

export function postgresLedger(url: string): LedgerDatabase<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  pool.on("error", () => {});
  // Without a listener, a connection that breaks would end the process. Its user learns it from the query.
  pool.on("connect", (client) => client.on("error", () => {}));
  return {
    effects: pgEffects(pool, TIMEOUTS),
    async enter(tx, { payTxnId, amount }) {
      await tx.query("INSERT INTO ledger (pay_txn_id, amount) VALUES ($1, $2)", [payTxnId, amount]);
    },
    async transaction(work) {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        await work(client);
        await client.query("COMMIT");
        client.release();
      } catch (error) {
        client.release(true);
        throw error;
      }
    },
    async create(table) {
      await pool.query(table);
    },
    async entries() {
      const sql = 'SELECT pay_txn_id AS "payTxnId", amount FROM ledger';
      return (await pool.query<Booking>(sql)).rows;
    },
    end: () => pool.end(),
  };
}
