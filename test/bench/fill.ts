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

/** Adds copies of a finished record that is in the file, and of its event. */
export function fillSqlite(database: SqliteHandle, { from, to }: { from: number; to: number }): void {
  const finished = database.prepare(
    "SELECT place, text FROM records WHERE expires_at IS NOT NULL LIMIT 1",
  ) as Statement;
  const { place, text } = finished.get() as { readonly place: number; readonly text: string };
  const addRecord = database.prepare(
    "INSERT INTO records (key, version, text, due_in_ms, expires_at) VALUES (?, 'filled', ?, 0, ?)",
  ) as Statement;
  const addEvent = database.prepare(
    `INSERT INTO events
     SELECT last_insert_rowid(), ? || substr(event_id, 33), state, reason, flow, tenant, ?, event, status, ?, accepted_at
     FROM events WHERE record = ?`,
  ) as Statement;
  const expiresAt = Date.now() + RETENTION_DAYS * DAY_MS;
  database.exec("BEGIN");
  for (let n = from; n < to; n++) {
    const key = keyOf(n);
    addRecord.run(key, text, expiresAt + n);
    addEvent.run(key, `id-${key}`, `o-${key}`, place);
  }
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
