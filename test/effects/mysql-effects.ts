import { type EffectContext, type Effects, effects } from "@payhooks/core/effects";
import type { Pool, PoolConnection, ResultSetHeader, RowDataPacket } from "mysql2/promise";

const TABLE = `CREATE TABLE IF NOT EXISTS payhooks_effects (
  id VARBINARY(255) PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  done BOOLEAN NOT NULL DEFAULT FALSE, KEY (at)) ENGINE = InnoDB`;

const REPEATABLE = new Set(["ER_LOCK_DEADLOCK", "ER_LOCK_WAIT_TIMEOUT"]);
const AWAY = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ETIMEDOUT",
  "PROTOCOL_CONNECTION_LOST",
  "ER_OPTION_PREVENTS_STATEMENT",
]);
const codeOf = (error: unknown): string => (error as { code?: string } | null)?.code ?? "";

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
    async insert(tx, id, as) {
      const sql = "INSERT IGNORE INTO payhooks_effects (id, done) VALUES (?, ?)";
      const [{ affectedRows }] = await tx.query<ResultSetHeader>(sql, [id, as === "done"]);
      if (affectedRows === 1) {
        if (as === "begun") await tx.query("SAVEPOINT payhooks_effect");
        return { found: "nothing" };
      }
      const select = "SELECT done FROM payhooks_effects WHERE id = ? LOCK IN SHARE MODE";
      const [[row]] = await tx.query<RowDataPacket[]>(select, [id]);
      return { found: row?.done === 1 ? "done" : "begun" };
    },
    async finish(tx, id) {
      await tx.query("RELEASE SAVEPOINT payhooks_effect");
      const sql = "UPDATE payhooks_effects SET done = TRUE WHERE id = ? AND NOT done";
      const [{ affectedRows }] = await tx.query<ResultSetHeader>(sql, [id]);
      return affectedRows === 1;
    },
    async hasEnded(tx, _id, _stored, error) {
      if (REPEATABLE.has(codeOf(error))) return false;
      return tx.query("ROLLBACK TO SAVEPOINT payhooks_effect").then(
        () => false,
        (missing: unknown) => codeOf(missing) === "ER_SP_DOES_NOT_EXIST",
      );
    },
    isRepeatable: (error) => REPEATABLE.has(codeOf(error)),
    isUnavailable: (error) => AWAY.has(codeOf(error)),
    open: async () => void (await pool.query(TABLE)),
    async prune(keepMs, limit) {
      const sql = "DELETE FROM payhooks_effects WHERE at < NOW() - INTERVAL ? SECOND ORDER BY at LIMIT ?";
      const [{ affectedRows }] = await pool.query<ResultSetHeader>(sql, [Math.ceil(keepMs / 1_000), limit]);
      return affectedRows;
    },
  });
