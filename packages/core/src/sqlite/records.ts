import { LRUCache } from "lru-cache";
import { decodeRecord, encodeRecord, partsOf } from "../inbox/codec.ts";
import { type IdempotencyRecord, isFinished } from "../inbox/record.ts";
import type { SqliteDatabase, SqliteStatement } from "./driver.ts";

/** Records are kept up to so many characters of their text. */
const KEPT_LENGTH = 8 * 1024 * 1024;

/**
 * The rows of records. Between its accept and its end a record is read some five times: what this handle has written
 * itself, unfinished, it keeps decoded for as long as no other connection has written to the file.
 */
export class Records {
  readonly #select: SqliteStatement;
  readonly #upsert: SqliteStatement;
  readonly #dataVersion: SqliteStatement;
  readonly #kept = new LRUCache<string, IdempotencyRecord>({ maxSize: KEPT_LENGTH });
  #version: unknown;
  #checked = false;

  constructor(database: SqliteDatabase) {
    this.#select = database.prepare("SELECT value, expires FROM records WHERE key = ?");
    this.#upsert = database.prepare(
      "INSERT INTO records (key, value, expires) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires",
    );
    this.#dataVersion = database.prepare("PRAGMA data_version");
  }

  /** At the beginning of each transaction: another connection may have written since the last. */
  begin(): void {
    this.#checked = false;
  }

  /**
   * Inside a transaction, in which nobody else can write: a record that the caller may change in place, if it writes
   * it then.
   */
  take(key: string, now: number): IdempotencyRecord | null {
    if (!this.#checked) this.#forgetIfChanged();
    return this.#kept.get(key) ?? this.read(key, now);
  }

  #forgetIfChanged(): void {
    const { data_version: version } = this.#dataVersion.get() as { data_version: unknown };
    if (version !== this.#version) this.forget();
    this.#version = version;
    this.#checked = true;
  }

  /** What is committed, or written in this transaction. */
  read(key: string, now: number): IdempotencyRecord | null {
    const row = this.#select.get(key) as { value: string; expires: number | null } | undefined | null;
    if (row === undefined || row === null) return null;
    return row.expires !== null && row.expires <= now ? null : decodeRecord(partsOf(row.value));
  }

  /** Inside a transaction; the record belongs to this from here on. */
  write(key: string, record: IdempotencyRecord): void {
    const { head, tail } = encodeRecord(record);
    const text = head + tail;
    const finished = isFinished(record);
    this.#upsert.run(key, text, finished ? Math.ceil(record.expiresAt) : null);
    if (finished) this.#kept.delete(key);
    else this.#kept.set(key, record, { size: text.length });
  }

  /** When a transaction was rolled back, nothing of what it wrote is so. */
  forget(): void {
    this.#kept.clear();
  }
}
