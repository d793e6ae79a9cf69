import { LRUCache } from "lru-cache";
import { decodeRecord, encodeRecord, partsOf } from "../inbox/codec.ts";
import { type IdempotencyRecord, isFinished } from "../inbox/record.ts";
import type { SqliteDatabase, SqliteStatement } from "./driver.ts";

/** Records are kept up to so many characters of their text. */
const KEPT_LENGTH = 8 * 1024 * 1024;

/** A row of the table of records. */
export interface Row {
  readonly key: string;
  /** Its rowid; null until it is written. */
  place: number | null;
  record: IdempotencyRecord | null;
}

/**
 * The rows of records. Between its accept and its end a record is read some five times: what this handle has written
 * itself, unfinished, it keeps decoded for as long as no other connection has written to the file.
 */
export class Records {
  readonly #select: SqliteStatement;
  readonly #insert: SqliteStatement;
  readonly #update: SqliteStatement;
  readonly #lastPlace: SqliteStatement;
  readonly #dataVersion: SqliteStatement;
  readonly #kept = new LRUCache<string, Row>({ maxSize: KEPT_LENGTH });
  #version: unknown;
  #checked = false;

  constructor(database: SqliteDatabase) {
    this.#select = database.prepare("SELECT rowid AS place, value, expires FROM records WHERE key = ?");
    this.#insert = database.prepare("INSERT INTO records (key, value, expires) VALUES (?, ?, ?)");
    this.#update = database.prepare("UPDATE records SET value = ?, expires = ? WHERE rowid = ?");
    this.#lastPlace = database.prepare("SELECT last_insert_rowid() AS place");
    this.#dataVersion = database.prepare("PRAGMA data_version");
  }

  /** At the beginning of each transaction: another connection may have written since the last. */
  begin(): void {
    this.#checked = false;
  }

  /**
   * Inside a transaction, in which nobody else can write: a row whose record the caller may change in place, if it
   * writes it then.
   */
  take(key: string, now: number): Row {
    if (!this.#checked) this.#forgetIfChanged();
    return this.#kept.get(key) ?? this.#read(key, now);
  }

  #forgetIfChanged(): void {
    const { data_version: version } = this.#dataVersion.get() as { data_version: unknown };
    if (version !== this.#version) this.forget();
    this.#version = version;
    this.#checked = true;
  }

  /** What is committed, or written in this transaction. */
  read(key: string, now: number): IdempotencyRecord | null {
    return this.#read(key, now).record;
  }

  #read(key: string, now: number): Row {
    const row = this.#select.get(key) as
      | { place: number; value: string; expires: number | null }
      | undefined
      | null;
    if (row === undefined || row === null) return { key, place: null, record: null };
    const expired = row.expires !== null && row.expires <= now;
    return { key, place: row.place, record: expired ? null : decodeRecord(partsOf(row.value)) };
  }

  /** Inside a transaction; the row belongs to this from here on. Returns its place. */
  write(row: Row, record: IdempotencyRecord): number {
    const { head, tail } = encodeRecord(record);
    const text = head + tail;
    const finished = isFinished(record);
    const expires = finished ? Math.ceil(record.expiresAt) : null;
    if (row.place === null) row.place = this.#placeOf(this.#insert.run(row.key, text, expires));
    else this.#update.run(text, expires, row.place);
    row.record = record;
    if (finished) this.#kept.delete(row.key);
    else this.#kept.set(row.key, row, { size: text.length });
    return row.place;
  }

  /**
   * Where a row was inserted: most drivers say so. Not by RETURNING: after an insert that found the disk full, libsql
   * 0.5.29 then lost and mixed up rows of other transactions.
   */
  #placeOf(inserted: unknown): number {
    const told = (inserted as { lastInsertRowid?: number | bigint } | null | undefined)?.lastInsertRowid;
    return Number(told ?? (this.#lastPlace.get() as { place: number }).place);
  }

  /** When a transaction was rolled back, nothing of what it wrote is so. */
  forget(): void {
    this.#kept.clear();
  }
}
