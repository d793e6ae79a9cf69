import type { EventFilter } from "../inbox/contract/event-query.ts";
import type {
  DueRecords,
  ListCursor,
  ListOrder,
  ListPage,
  RecordStore,
  ScanPage,
  StoreCounts,
  Swap,
  SwapResult,
  VersionedRecord,
} from "../inbox/contract/store.ts";
import type { Lanes } from "../inbox/record/lane.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { isDataRefused } from "../sqlite/failure.ts";
import type { SqliteDatabase } from "../sqlite/handle.ts";
import { listEvents } from "../sqlite/listing.ts";
import {
  countsOf,
  dueRecordsOf,
  hideDue,
  isAnyDue,
  isAnyExpired,
  pruneSome,
  readAll,
  scanFrom,
  swapOne,
} from "../sqlite/operations.ts";
import { createTables, datasetIdOf, readNote, SCHEMA_VERSION, writeNote } from "../sqlite/schema.ts";
import { Tables } from "../sqlite/tables.ts";
import type { Environment } from "../time/environment.ts";
import { databaseOf, type ObjectStorage } from "./storage.ts";

/** When an object wakes that was stopped while it was opened. */
const WAKE_DELAY_MS = 60_000;

/** The object's tables, once they exist. */
interface OpenStorage {
  readonly database: SqliteDatabase;
  readonly tables: Tables;
  readonly datasetId: string;
}

/**
 * Keeps records in the storage of a Durable Object, of which there is one in the world.
 *
 * **Writes.** The platform holds back every answer and every request of the object until what it had written before is
 * safe. So a write is made when its statement returns. If it cannot be committed, the platform resets the object, and
 * the answer is never sent.
 *
 * **The alarm.** Nothing runs here while the object sleeps. So each write also sets the alarm, to the time at which the
 * next record is due. Both are one commit, because nothing is waited for in between.
 */
export class DurableObjectStore implements RecordStore {
  readonly durability = "replicated";
  readonly sleeps = true;
  readonly #storage: ObjectStorage;
  readonly #environment: Environment;
  #opening: Promise<void> | null = null;
  #openStorageOrNull: OpenStorage | null = null;
  /** When the object is woken; null for never. Undefined: that is not known. */
  #alarmAt: number | null | undefined;

  constructor(storage: ObjectStorage, environment: Environment) {
    this.#storage = storage;
    this.#environment = environment;
  }

  /** After a failure, it can be called again. */
  open(): Promise<void> {
    this.#opening ??= this.#open().catch((cause: unknown) => {
      this.#opening = null;
      throw cause instanceof PayhooksError ? cause : unsuitableError(describeError(cause), cause);
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    const database = databaseOf(this.#storage);
    const datasetId = this.#storage.transactionSync(() => prepareTables(database, this.#environment.token()));
    const tables = new Tables(database);
    // Only this shows that the class has no alarm(). Then nothing would wake the object.
    await this.#storage.setAlarm(earliestDueAt(tables, this.now()) ?? this.now() + WAKE_DELAY_MS);
    this.#openStorageOrNull = { database, tables, datasetId };
    this.#setAlarm();
  }

  get #openStorage(): OpenStorage {
    if (this.#openStorageOrNull !== null) return this.#openStorageOrNull;
    throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "The storage of durableObjectInbox is not open.", {
      fix: "If the inbox was not closed, look at the error of its start.",
    });
  }

  get datasetId(): string {
    return this.#openStorage.datasetId;
  }

  now(): number {
    return this.#environment.now();
  }

  read(keys: readonly string[]): readonly (VersionedRecord | null)[] {
    return readAll(this.#openStorage.tables, keys, this.now());
  }

  swap(items: readonly Swap[]): readonly SwapResult[] {
    const { tables } = this.#openStorage;
    const results = items.map((item): SwapResult => {
      try {
        return this.#storage.transactionSync(() => swapOne(tables, item, this.now()));
      } catch (cause) {
        return { kind: isDataRefused(cause) ? "refused" : "not-written", cause };
      }
    });
    this.#setAlarm();
    return results;
  }

  takeDue(limit: Lanes, hideMs: number): DueRecords {
    const { tables } = this.#openStorage;
    const now = this.now();
    const take = () => hideDue(tables, limit, hideMs, now);
    const takenRows = isAnyDue(tables, limit, now) ? this.#storage.transactionSync(take) : [];
    // `work` ends with this question. If an alarm has called that, the alarm is over, perhaps before its time by this
    // clock. And a failed alarm has set the time of the next alarm. If nothing waits, none is set.
    const isCountOnly = limit.usual + limit.patient === 0;
    if (isCountOnly && this.#alarmAt !== null) this.#alarmAt = undefined;
    this.#setAlarm();
    return dueRecordsOf(tables, takenRows, now);
  }

  #setAlarm(): void {
    const alarmAt = earliestDueAt(this.#openStorage.tables, this.now());
    if (alarmAt === this.#alarmAt) return;
    this.#alarmAt = alarmAt;
    const setting = alarmAt === null ? this.#storage.deleteAlarm() : this.#storage.setAlarm(alarmAt);
    // If that fails, so does the commit, and the platform resets the object.
    setting.catch(() => {});
  }

  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<ListPage> {
    await this.#nextTurn();
    return listEvents(this.#openStorage.database, filter, cursor, limit, first, this.now());
  }

  async scan(cursor: string | null, limit: number): Promise<ScanPage> {
    await this.#nextTurn();
    return scanFrom(this.#openStorage.tables, cursor, limit, this.now());
  }

  counts(): StoreCounts {
    return countsOf(this.#openStorage.tables, this.now());
  }

  async prune(before: number): Promise<boolean> {
    await this.#nextTurn();
    const { tables } = this.#openStorage;
    return isAnyExpired(tables, before) && this.#storage.transactionSync(() => pruneSome(tables, before));
  }

  async readNote(name: string): Promise<string | null> {
    return readNote(this.#openStorage.database, name);
  }

  async writeNote(name: string, text: string): Promise<void> {
    writeNote(this.#openStorage.database, name, text);
  }

  /** SQLite answers synchronously. Without a pause between them, a sequence of pages or steps would block everything else. */
  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#environment.nextTurn(resolve));
  }

  async close(): Promise<void> {
    await this.#opening?.catch(() => {});
    this.#openStorageOrNull = null;
  }
}

/** When something is due, or was due first. Null: nothing waits. */
function earliestDueAt(tables: Tables, now: number): number | null {
  return tables.oldestDueAt(now) ?? tables.nextDueAt(now);
}

/** Makes the tables, and returns the id of the data set. */
function prepareTables(database: SqliteDatabase, newId: string): string {
  createTables(database, newId);
  // An object has no `user_version`.
  database.prepare("INSERT OR IGNORE INTO meta (name, value) VALUES ('version', ?)").run(SCHEMA_VERSION);
  const { value } = database.prepare("SELECT value FROM meta WHERE name = 'version'").get() as {
    readonly value: unknown;
  };
  if (value !== SCHEMA_VERSION) {
    throw unsuitableError(
      `its tables have version ${String(value)}, and this package knows ${SCHEMA_VERSION}`,
    );
  }
  return datasetIdOf(database);
}

function unsuitableError(how: string, cause?: unknown): PayhooksError {
  return new PayhooksError("ERR_SQLITE_UNSUITABLE", `The Durable Object cannot be an inbox: ${how}.`, {
    fix: "Give durableObjectInbox the ctx.storage of a class with SQLite storage (new_sqlite_classes) that has an alarm(), and no tables of your own named records, events, readings or meta.",
    cause,
  });
}
