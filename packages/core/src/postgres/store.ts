import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { Inbox } from "../inbox/contract/inbox.ts";
import type {
  DueRecords,
  KnownRecord,
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
import { decodeRecord } from "../inbox/record/codec.ts";
import { LANES, type Lane, type Lanes } from "../inbox/record/lane.ts";
import { ServerClock } from "../inbox/server-clock.ts";
import type { LoggerOption } from "../notices/logger.ts";
import type { Loss } from "../notices/notice.ts";
import type { SetupWarning } from "../notices/setup-warnings.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { countsIn } from "../sql/counts.ts";
import { DueBound, pollResultOf, rowTimeOf } from "../sql/due-bound.ts";
import type { Clock } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { isPool, type PostgresTarget, type Row, type Statement, type Values } from "./client.ts";
import { type Connections, connections } from "./connections.ts";
import { isPoolerError } from "./failure.ts";
import { Hints } from "./hints.ts";
import { listEvents } from "./listing.ts";
import { explainStartError } from "./refusal.ts";
import { checkSchemaName, quoteSchema } from "./schema.ts";
import { OPEN_TIMEOUT_MS, SchemaCheck } from "./schema-check.ts";
import type { Session } from "./session.ts";
import { runWithRetries } from "./sessions.ts";
import { PRUNE_BATCH_SIZE, type Statements, statementsFor } from "./statements.ts";
import { Writes } from "./swap.ts";
import { type LapseQuery, TakenRecords } from "./taken-records.ts";

/** Above this number, due records are not counted exactly. */
const MAX_COUNTED_DUE = 1_000;

type RunStatement = (statement: Statement, values: Values) => Promise<readonly Row[]>;

/** The records that one statement has found and taken. */
interface LanePollResult extends Omit<DueRecords, "records"> {
  /** Of the records that were taken, in the order of {@link DueRecords.records}. */
  readonly keys: readonly string[];
}

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /** The schema of the tables. Default `payhooks`. At most 40 characters of a to z, 0 to 9 and _. */
  readonly schema?: string | undefined;
  /** Makes the tables at the start. Default true. Use false if the role may not: see {@link postgresMigration}. */
  readonly migrate?: boolean | undefined;
  /**
   * Set it if a pooler gives each statement to another session, as PgBouncer does in transaction mode. Default false. The store
   * then does without named statements and notifications, so events of other processes are found only by polling.
   */
  readonly pooled?: boolean | undefined;
  /** The time after which a statement is given up. Default 1.5 s; keep it below `acceptTimeoutMs`. */
  readonly statementTimeoutMs?: number | undefined;
  /** The logger for warnings at the start. Default: the receiver posts them as notices, so its logger gets them. */
  readonly logger?: LoggerOption | undefined;
  /** For tests: a clock, or everything that the store takes from outside, except PostgreSQL itself. */
  readonly clock?: Clock | Environment | undefined;
}

/**
 * Keeps records in PostgreSQL, in a schema of their own. Writes that come at the same time are made by one statement, which is
 * a transaction by itself. The store has three connections of its own, so that handlers that use all of the program's cannot
 * block it.
 *
 * @experimental The interface of stores may still change in a minor release.
 * @throws PayhooksError `ERR_OPTION_INVALID`; at `open()` `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_POSTGRES_UNSUITABLE`.
 */
export function postgresStore(
  target: PostgresTarget | undefined,
  options: PostgresStoreOptions = {},
): RecordStore {
  checkSchemaName(options.schema ?? "payhooks");
  return new PostgresStore(target, options);
}

/** The parts of a store that is connected. */
interface OpenStore extends Connections {
  readonly writes: Writes;
}

class PostgresStore implements RecordStore {
  readonly durability: Inbox["durability"] = "host";
  readonly onDue?: (wake: () => boolean) => Promise<() => void>;
  readonly #target: PostgresTarget | undefined;
  readonly #options: PostgresStoreOptions;
  readonly #schema: string;
  readonly #environment: Environment;
  readonly #clock: ServerClock;
  readonly #statements: Statements;
  readonly #hints: Hints | null;
  /** Where polls for waiting records begin. */
  readonly #dueBound: DueBound;
  /** Where queries for ended leases begin. */
  readonly #endBound: DueBound;
  readonly #takenRecords: TakenRecords;
  readonly #schemaCheck: SchemaCheck;
  #opening: Promise<OpenStore> | null = null;

  constructor(target: PostgresTarget | undefined, options: PostgresStoreOptions) {
    const { schema = "payhooks", pooled = false, statementTimeoutMs = 1_500 } = options;
    const environment = environmentOf(options.clock);
    this.#target = target;
    this.#options = options;
    this.#schema = schema;
    this.#environment = environment;
    this.#clock = new ServerClock(environment);
    this.#schemaCheck = new SchemaCheck(schema, options.migrate !== false, options.logger);
    this.#statements = statementsFor(schema);
    const serverNow = (): number => this.now();
    const makeBound = (findOldest: Statement): DueBound =>
      new DueBound({
        environment,
        statementTimeoutMs,
        serverNow,
        findOldest: async () => pollResultOf((await this.#runBackground(findOldest))[0]),
      });
    this.#dueBound = makeBound(this.#statements.oldestDue);
    this.#endBound = makeBound(this.#statements.oldestTakenEnd);
    this.#takenRecords = new TakenRecords(this.#endBound);
    this.#hints = null;
    const hasSessions = typeof target === "string" || isPool(target);
    if (!hasSessions || pooled) return;
    const runBackground = (statement: Statement) =>
      this.#open().then((openStore) => openStore.background.run(statement));
    const hints = new Hints({
      clock: environment,
      announce: () => runBackground(this.#statements.announce),
      ensureListening: () => runBackground(this.#statements.listen),
    });
    this.#hints = hints;
    this.onDue = (wake) => hints.listen(wake);
  }

  get warnings(): readonly SetupWarning[] {
    return this.#schemaCheck.warnings;
  }

  get datasetId(): string {
    return this.#schemaCheck.datasetId;
  }

  async open(): Promise<void> {
    const openStore = await this.#open();
    try {
      await this.#schemaCheck.check(openStore);
      const askedAt = this.#environment.monotonic();
      this.#learnServerTime(
        await openStore.foreground.run({ ...this.#statements.time, givenClientLimitMs: OPEN_TIMEOUT_MS }),
        askedAt,
      );
    } catch (error) {
      if (!isPoolerError(error)) throw explainStartError(error);
      throw new PayhooksError(
        "ERR_POSTGRES_UNSUITABLE",
        "postgresInbox reaches PostgreSQL through a pooler, such as PgBouncer.",
        {
          fix: "Set pooled: true, or use the address of the server itself. If the pooler keeps a session for each client, let it pass the setting: ignore_startup_parameters = statement_timeout.",
          cause: error,
        },
      );
    }
  }

  async findLoss(knownRecords: readonly KnownRecord[]): Promise<Loss | null> {
    return this.#schemaCheck.findLoss(await this.#open(), knownRecords);
  }

  #open(): Promise<OpenStore> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #connect(): Promise<OpenStore> {
    const { pooled = false, statementTimeoutMs = 1_500 } = this.#options;
    const openStore = await connections({
      target: this.#target,
      schema: this.#schema,
      pooled,
      timeoutMs: statementTimeoutMs,
      environment: this.#environment,
      onNotification: () => this.#hints?.onNotification(),
    });
    const writes = new Writes({
      schema: this.#schema,
      sessions: openStore.foreground,
      learnServerTime: (rows, askedAt) => this.#learnServerTime(rows, askedAt),
      monotonic: () => this.#environment.monotonic(),
      read: (session, keys) => this.#read(session, keys),
      toRecord: versionedRecordOf,
      deleteExpired: async (session, keys) => {
        await runWithRetries(session, this.#statements.deleteExpired, [keys]);
      },
    });
    return { ...openStore, writes };
  }

  #learnServerTime(rows: readonly Row[], askedAt: number): void {
    const [row] = rows;
    if (row !== undefined) this.#clock.recordServerTime(Number(row.now), askedAt);
  }

  now(): number {
    return this.#clock.now();
  }

  async read(keys: readonly string[]): Promise<readonly (VersionedRecord | null)[]> {
    if (keys.length === 0) return [];
    const { foreground } = await this.#open();
    return foreground.use((session) => this.#read(session, keys));
  }

  async #read(session: Session, keys: readonly string[]): Promise<readonly (VersionedRecord | null)[]> {
    const askedAt = this.#environment.monotonic();
    const { read, readOne } = this.#statements;
    const [key] = keys;
    const isOne = key !== undefined && keys.length === 1;
    const rows = await (isOne
      ? runWithRetries(session, readOne, [key])
      : runWithRetries(session, read, [keys]));
    this.#learnServerTime(rows, askedAt);
    // If there is no record, the only row has no key.
    const storedRows = rows.filter((row) => row.key !== null);
    const recordsByKey = new Map(storedRows.map((row) => [String(row.key), versionedRecordOf(row)]));
    return keys.map((key) => recordsByKey.get(key) ?? null);
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    const { writes } = await this.#open();
    let results: readonly SwapResult[];
    try {
      results = await writes.swap(items);
    } finally {
      // A write whose outcome is unknown also counts as taken.
      for (const { index } of items)
        if (index.isLeased && index.dueAt !== null) this.#takenRecords.noteTakenUntil(index.dueAt);
    }
    if (items.some(({ shouldAnnounce }, index) => shouldAnnounce && results[index]?.kind === "written"))
      this.#hints?.send();
    return results;
  }

  /**
   * Takes records, and then reads their texts. A statement that hands out texts would hold the locks of its records
   * until the last byte has left the server. If this process is stopped meanwhile, that may take hours.
   */
  async takeDue(limit: Lanes, hideMs: number): Promise<DueRecords> {
    const lanes = LANES.filter((lane) => limit[lane] > 0);
    if (lanes.length === 0) {
      const row = await this.#countDue(MAX_COUNTED_DUE, (statement, values) => this.#poll(statement, values));
      return { records: [], left: countsLeftIn(row), nextDueAt: rowTimeOf(row?.next) };
    }
    for (const bound of [this.#dueBound, this.#endBound]) bound.throwFailure();
    const lapseQuery = await this.#takenRecords.nextQuery(this.now(), hideMs);
    const results: LanePollResult[] = [];
    for (const lane of lanes) results.push(await this.#takeLane(lane, limit[lane], hideMs, lapseQuery));
    const [first, second = first] = results;
    if (first === undefined || second === undefined) throw new Error("no poll was made");
    const keys = results.flatMap((result) => result.keys);
    const storedRecords = await this.read(keys);
    const records = keys.flatMap((key, index) =>
      storedRecords[index] ? [{ key, ...storedRecords[index] }] : [],
    );
    // The second poll sees what the first poll has left and hidden.
    return { records, left: second.left, nextDueAt: second.nextDueAt };
  }

  async #takeLane(
    lane: Lane,
    limit: number,
    hideMs: number,
    lapseQuery: LapseQuery | null,
  ): Promise<LanePollResult> {
    const from = await this.#dueBound.pollStart();
    const lapseParameters = [lapseQuery?.from ?? null, lapseQuery?.aheadMs ?? null];
    const rows = await this.#poll(this.#statements.takeDue, [
      limit,
      Math.ceil(hideMs),
      from,
      lane,
      ...lapseParameters,
    ]);
    const [first] = rows;
    const result = pollResultOf(first);
    this.#dueBound.recordPoll(from, result);
    const keys = rows.flatMap(({ key }) => (typeof key === "string" ? [key] : []));
    if (lapseQuery !== null) {
      this.#takenRecords.recordResult(lapseQuery, {
        now: result.now,
        oldest: rowTimeOf(first?.lapsed_at),
        nextEndAt: rowTimeOf(first?.next_end),
      });
    }
    if (keys.length > 0) this.#takenRecords.noteTakenUntil(result.now + hideMs);
    return {
      keys,
      left: countsLeftIn(first),
      nextDueAt: earlierOf(rowTimeOf(first?.next), this.#takenRecords.nothingEndsBefore),
    };
  }

  /**
   * Counts all that is due, lapsed leases included, and takes nothing. It moves the bounds as a poll does, because a
   * process that only counts makes no polls.
   */
  async #countDue(maxCount: number, run: RunStatement): Promise<Row | undefined> {
    const [from, endsFrom] = [await this.#dueBound.pollStart(), await this.#endBound.pollStart()];
    const [row] = await run(this.#statements.countDue, [maxCount, from, endsFrom]);
    const result = pollResultOf(row);
    this.#dueBound.recordPoll(from, result);
    this.#endBound.recordPoll(endsFrom, { now: result.now, oldest: rowTimeOf(row?.lapsed_at) });
    return row;
  }

  async #poll(statement: Statement, values: Values): Promise<readonly Row[]> {
    const { foreground } = await this.#open();
    const askedAt = this.#environment.monotonic();
    const rows = await foreground.run(statement, values);
    this.#learnServerTime(rows, askedAt);
    return rows;
  }

  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<ListPage> {
    return listEvents(quoteSchema(this.#schema), filter, cursor, limit, first, (statement, values) =>
      this.#runBackground(statement, values),
    );
  }

  async scan(cursor: string | null, limit: number): Promise<ScanPage> {
    const rows = await this.#runBackground(this.#statements.scan, [cursor ?? "0", limit]);
    const records = rows
      .filter((row) => row.is_there === true)
      .map((row) => ({ key: String(row.key), ...versionedRecordOf(row) }));
    return { records, next: rows.length < limit ? null : String(rows.at(-1)?.row_id) };
  }

  async counts(): Promise<StoreCounts> {
    const rows = await this.#runBackground(this.#statements.counts);
    const due = await this.#countDue(1, (statement, values) => this.#runBackground(statement, values));
    return countsIn(rows, earlierOf(rowTimeOf(due?.oldest), rowTimeOf(due?.lapsed_at)));
  }

  async prune(before: number): Promise<boolean> {
    const [row] = await this.#runBackground(this.#statements.prune, [Math.floor(before)]);
    return Number(row?.n) === PRUNE_BATCH_SIZE;
  }

  async readNote(name: string): Promise<string | null> {
    const [row] = await this.#runBackground(this.#statements.readNote, [name]);
    return row === undefined ? null : String(row.text);
  }

  async writeNote(name: string, text: string): Promise<void> {
    await this.#runBackground(this.#statements.writeNote, [name, text]);
  }

  async #runBackground(statement: Statement, values: Values = []): Promise<readonly Row[]> {
    const { background } = await this.#open();
    return background.run(statement, values);
  }

  async close(): Promise<void> {
    const openStore = await this.#opening?.catch(() => null);
    await openStore?.foreground.close();
    await openStore?.background.close();
  }
}

function countsLeftIn(row: Row | undefined): Lanes {
  return { usual: Number(row?.usual ?? 0), patient: Number(row?.patient ?? 0) };
}

function earlierOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

function versionedRecordOf(row: Row): VersionedRecord {
  return { version: String(row.version), record: decodeRecord(String(row.text)) };
}
