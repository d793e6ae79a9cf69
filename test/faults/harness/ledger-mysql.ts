/** A ledger in MySQL or MariaDB, with `mysqlEffects`. */
import { mysqlEffects } from "@payhooks/core/effects/mysql";
import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import type { Booking, LedgerDatabase } from "./ledger.ts";

/** Longer than a transaction idles here, and shorter than a process is frozen. Both are used in whole seconds. */
const TIMEOUTS = { lockTimeoutMs: 1_000, idleTimeoutMs: 1_000 } as const;

export function mysqlLedger(url: string): LedgerDatabase<PoolConnection> {
  const pool = createPool({ uri: url, connectionLimit: 8 });
  return {
    effects: mysqlEffects(pool, TIMEOUTS),
    async enter(tx, { payTxnId, amount }) {
      await tx.query("INSERT INTO ledger (pay_txn_id, amount) VALUES (?, ?)", [payTxnId, amount]);
    },
    async transaction(work) {
      const connection = await pool.getConnection();
      try {
        await connection.beginTransaction();
        await work(connection);
        await connection.commit();
        connection.release();
      } catch (error) {
        connection.destroy();
        throw error;
      }
    },
    async create(table) {
      await pool.query(table);
    },
    async entries() {
      const sql = "SELECT pay_txn_id AS payTxnId, amount FROM ledger";
      return (await pool.query<(Booking & RowDataPacket)[]>(sql))[0];
    },
    end: () => pool.end(),
  };
}
