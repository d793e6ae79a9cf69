/** Many finished records: copies of one, in the form that the inbox stores, since the real way takes an hour. */
import { createHash } from "node:crypto";
import type { SqliteHandle } from "@payhooks/core/sqlite";
import type { RedisServer } from "../faults/harness/redis-server.ts";

interface Statement {
  get(): unknown;
  run(...parameters: readonly unknown[]): unknown;
}

const DAY_MS = 86_400_000;
const RETENTION_DAYS = 8;

/** A record's key: as random as a hash is. */
const keyOf = (n: number): string => createHash("md5").update(`record ${n}`).digest("hex");

/** Adds copies of a finished record that is in the file. */
export function fillSqlite(database: SqliteHandle, { from, to }: { from: number; to: number }): void {
  const select = database.prepare("SELECT value FROM records WHERE expires IS NOT NULL LIMIT 1") as Statement;
  const { value } = select.get() as { readonly value: string };
  const insert = database.prepare("INSERT INTO records (key, value, expires) VALUES (?, ?, ?)") as Statement;
  const expires = Date.now() + RETENTION_DAYS * DAY_MS;
  database.exec("BEGIN");
  for (let n = from; n < to; n++) insert.run(keyOf(n), value, expires + n);
  database.exec("COMMIT");
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

/** Adds copies of a finished record that is under the prefix `payhooks`. */
export async function fillRedis(
  redis: RedisServer,
  { from, to }: { from: number; to: number },
): Promise<void> {
  const keys = (await redis.tell("KEYS", "payhooks:*")) as readonly string[];
  const one = keys.find((key) => /^payhooks:[0-9a-f]{32}$/.test(key));
  if (one === undefined) throw new Error("there is no record to copy");
  const value = String(await redis.tell("GET", one));
  const client = redis.client();
  for (let n = from; n < to; n += 1_000) {
    const batch = client.pipeline();
    for (let i = n; i < Math.min(to, n + 1_000); i++) {
      batch.set(`payhooks:${keyOf(i)}`, value, "EX", (RETENTION_DAYS * DAY_MS) / 1_000);
    }
    await batch.exec();
  }
  client.disconnect();
}
