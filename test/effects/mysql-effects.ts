import { type EffectContext, type Effects, effects } from "@payhooks/core/effects";
import type { Pool, PoolConnection, ResultSetHeader } from "mysql2/promise";

const TABLE = `CREATE TABLE IF NOT EXISTS payhooks_effects (
  id VARBINARY(255) PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, KEY (at)) ENGINE = InnoDB`;

const REPEATABLE = new Set(["ER_LOCK_DEADLOCK", "ER_LOCK_WAIT_TIMEOUT"]);

export const mysqlEffects = (pool: Pool): Effects<EffectContext<PoolConnection>> =>
  effects<PoolConnection>({
    async transaction(work) {
      const connection = await pool.getConnection();
      try {
        await connection.beginTransaction();
        const value = await work(connection);
        await connection.commit();
        connection.release();
        return value;
      } catch (error) {
        await connection.rollback().then(
          () => connection.release(),
          () => connection.destroy(),
        );
        throw error;
      }
    },
    async insert(tx, id) {
      const sql = "INSERT IGNORE INTO payhooks_effects (id) VALUES (?)";
      const [{ affectedRows }] = await tx.query<ResultSetHeader>(sql, [id]);
      if (affectedRows !== 1) return false;
      await tx.query("SAVEPOINT payhooks_effect");
      return true;
    },
    async isIntact(tx) {
      await tx.query("RELEASE SAVEPOINT payhooks_effect");
      return true;
    },
    isRepeatable: (error) => REPEATABLE.has((error as { code?: string }).code ?? ""),
    open: async () => void (await pool.query(TABLE)),
    async prune(keepMs, limit) {
      const sql = "DELETE FROM payhooks_effects WHERE at < NOW() - INTERVAL ? SECOND ORDER BY at LIMIT ?";
      const [{ affectedRows }] = await pool.query<ResultSetHeader>(sql, [Math.ceil(keepMs / 1_000), limit]);
      return affectedRows;
    },
  });
