import type { EventFilter } from "../inbox/contract/event-query.ts";
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
import type { Lanes } from "../inbox/record/lane.ts";
import { ServerClock } from "../inbox/server-clock.ts";
import type { LoggerOption } from "../notices/logger.ts";
import type { Loss } from "../notices/notice.ts";
import { type SetupWarning, SetupWarnings } from "../notices/setup-warnings.ts";
import { checkTime } from "../protocol/check-number.ts";
import { countsIn } from "../sql/counts.ts";
import { DueBound, OLDEST_DUE_TIMEOUT_MS, pollResultOf, rowTimeOf } from "../sql/due-bound.ts";
import type { Clock } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import {
  Connections,
  connectionSettingsOf,
  type Driver,
  loadDriver,
  type MysqlTarget,
  type Row,
  type Statement,
} from "./client.ts";
import { explainConnectionError } from "./failure.ts";
import { listEvents } from "./listing.ts";
import { checkPrefix, datasetIdOf, prepareTables } from "./schema.ts";
import {
  countEvents,
  findOldestDue,
  NOW_SQL,
  pruneRecords,
  readRecords,
  takeRecords,
  UNEXPIRED_SQL,
} from "./statements.ts";
import { type SwapDependencies, Writes } from "./swap.ts";

/** How many connections are on the path of a delivery. One more is for lists, counts and pruning. */
const FOREGROUND_CONNECTIONS = 2;

/** Options of {@link mysqlStore}. */
export interface MysqlStoreOptions {
  /** The beginning of the tables' names. Default `payhooks`. At most 40 characters of a to z, 0 to 9 and _. */
  readonly prefix?: string | undefined;
  /** Makes the tables at the start. Default true. Use false if the user may not: see {@link mysqlMigration}. */
  readonly migrate?: boolean | undefined;
  /** The time after which statements are given up. Default 1.5 s; keep it below `acceptTimeoutMs`. */
  readonly statementTimeoutMs?: number | undefined;
  /** The logger for warnings at the start. Default: the receiver posts them as notices, so its logger gets them. */
  readonly logger?: LoggerOption | undefined;
  /** For tests: a clock, or everything that the store takes from outside, except MySQL itself. */
  readonly clock?: Clock | Environment | undefined;
}

/**
 * Keeps records in MySQL or MariaDB. Writes that come at the same time are made by one transaction in one packet. The store has
 * three connections of its own, so that handlers that use all of the program's cannot block it.
 *
 * @experimental The interface of stores may still change in a minor release.
 * @throws PayhooksError `ERR_OPTION_INVALID`; at `open()` `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_MYSQL_UNSUITABLE`.
 */
export function mysqlStore(target: MysqlTarget | undefined, options: MysqlStoreOptions = {}): RecordStore {
  return mysqlStoreOn(loadDriver, target, options);
}

/** Makes a {@link mysqlStore} on a given driver. */
export function mysqlStoreOn(
  load: () => Promise<Driver>,
  target: MysqlTarget | undefined,
  options: MysqlStoreOptions,
): RecordStore {
  checkPrefix(options.prefix ?? "payhooks");
  return new MysqlStore(load, target, options);
}

/** The parts of a store that is connected. */
interface OpenStore {
  /** For calls that a delivery or a run waits for. */
  readonly foreground: Connections;
  /** For statements that may take longer, so that no delivery waits for them. */
  readonly background: Connections;
  readonly writes: Writes;
}

class MysqlStore implements RecordStore {
  readonly durability = "host";
  datasetId = "";
  readonly #load: () => Promise<Driver>;
  readonly #target: MysqlTarget | undefined;
  readonly #prefix: string;
  readonly #shouldMigrate: boolean;
  readonly #timeoutMs: number;
  readonly #environment: Environment;
  readonly #clock: ServerClock;
  readonly #warnings: SetupWarnings;
  readonly #dueBound: DueBound;
  #opening: Promise<OpenStore> | null = null;

  constructor(load: () => Promise<Driver>, target: MysqlTarget | undefined, options: MysqlStoreOptions) {
    const { prefix = "payhooks", migrate = true, statementTimeoutMs = 1_500 } = options;
    this.#load = load;
    this.#target = target;
    this.#prefix = prefix;
    this.#shouldMigrate = migrate;
    this.#timeoutMs = statementTimeoutMs;
    this.#environment = environmentOf(options.clock);
    this.#clock = new ServerClock(this.#environment);
    this.#warnings = new SetupWarnings(options.logger);
    this.#dueBound = new DueBound({
      environment: this.#environment,
      statementTimeoutMs,
      serverNow: () => this.now(),
      findOldest: async () => {
        const { background } = await this.#open();
        const [[row] = []] = await background.run([findOldestDue(this.#prefix)], OLDEST_DUE_TIMEOUT_MS);
        return pollResultOf(row);
      },
    });
  }

  get warnings(): readonly SetupWarning[] {
    return this.#warnings.all;
  }

  async open(): Promise<void> {
    try {
      const { foreground } = await this.#open();
      await this.#prepare(foreground);
      await this.#run(foreground, [[`SELECT ${NOW_SQL} AS now`]]);
    } catch (error) {
      throw explainConnectionError(error);
    }
  }

  async #prepare(connections: Connections): Promise<void> {
    this.datasetId = await prepareTables(connections, this.#prefix, this.#shouldMigrate, this.#warnings);
  }

  /** Connects when something is asked. After a failure, it can be called again. */
  #open(): Promise<OpenStore> {
    this.#opening ??= (async () => {
      const settings = connectionSettingsOf(this.#target);
      checkTime("statementTimeoutMs", this.#timeoutMs);
      const driver = await this.#load();
      const makeConnections = (count: number): Connections =>
        new Connections(driver, settings, count, this.#environment, this.#timeoutMs);
      const foreground = makeConnections(FOREGROUND_CONNECTIONS);
      const dependencies: SwapDependencies = {
        prefix: this.#prefix,
        connections: foreground,
        learnServerTime: (rows, askedAt) => this.#learnServerTime(rows, askedAt),
        monotonic: () => this.#environment.monotonic(),
        read: (keys) => this.read(keys),
        toRecord: versionedRecordOf,
      };
      return {
        foreground,
        background: makeConnections(1),
        writes: new Writes(dependencies, FOREGROUND_CONNECTIONS),
      };
    })().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /** Runs statements, and learns the server's time from the first row of the last statement. */
  async #run(
    connections: Connections,
    statements: readonly Statement[],
  ): Promise<readonly (readonly Row[])[]> {
    const askedAt = this.#environment.monotonic();
    const answers = await connections.run(statements);
    this.#learnServerTime(answers.at(-1) ?? [], askedAt);
    return answers;
  }

  #learnServerTime([row]: readonly Row[], askedAt: number): void {
    if (row?.now !== undefined) this.#clock.recordServerTime(Number(row.now), askedAt);
  }

  async #runBackground(...statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    return this.#run((await this.#open()).background, statements);
  }

  async findLoss(knownRecords: readonly KnownRecord[]): Promise<Loss | null> {
    const { background } = await this.#open();
    const idBefore = this.datasetId;
    const datasetId = await datasetIdOf(background, this.#prefix);
    this.datasetId = datasetId ?? "";
    // If something cannot be made again now, the next check tries it.
    if (datasetId === null) await this.#prepare(background).catch(() => {});
    // The loss of a data set without an id was reported before.
    if (idBefore !== "" && datasetId !== idBefore) return "replaced";
    return (await this.#hasAllRecords(knownRecords)) ? null : "missing";
  }

  async #hasAllRecords(knownRecords: readonly KnownRecord[]): Promise<boolean> {
    if (knownRecords.length === 0) return true;
    const [rows = []] = await this.#runBackground([
      `SELECT r.\`key\`, r.version, COUNT(e.event_id) AS n, SUM(e.state <> 'finished') AS open
      FROM ${this.#prefix}_records r LEFT JOIN ${this.#prefix}_events e ON e.record = r.row_id
      WHERE r.\`key\` IN (?) GROUP BY r.row_id, r.\`key\`, r.version`,
      knownRecords.map(({ key }) => key),
    ]);
    const rowsByKey = new Map(rows.map((row) => [String(row.key), row]));
    return knownRecords.every(({ key, version, index }) => {
      const row = rowsByKey.get(key);
      if (row === undefined) return false;
      const isOpen = index.events.some(({ state }) => state !== "finished");
      if (row.version !== version) return true;
      return (Number(row.n) > 0 || index.events.length === 0) && (Number(row.open) > 0 || !isOpen);
    });
  }

  now(): number {
    return this.#clock.now();
  }

  async read(keys: readonly string[]): Promise<readonly (VersionedRecord | null)[]> {
    if (keys.length === 0) return [];
    const { foreground } = await this.#open();
    const [rows = []] = await this.#run(foreground, [readRecords(this.#prefix, keys)]);
    const recordsByKey = new Map(
      rows.filter((row) => row.key !== null).map((row) => [row.key, versionedRecordOf(row)]),
    );
    return keys.map((key) => recordsByKey.get(key) ?? null);
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    return (await this.#open()).writes.swap(items);
  }

  async takeDue(limit: Lanes, hideMs: number): Promise<DueRecords> {
    if (limit.usual + limit.patient > 0) this.#dueBound.throwFailure();
    const { foreground } = await this.#open();
    const from = await this.#dueBound.pollStart();
    const answers = await this.#run(foreground, takeRecords(this.#prefix, limit, hideMs, from));
    const [dueRow] = answers.at(-1) ?? [];
    this.#dueBound.recordPoll(from, pollResultOf(dueRow));
    return {
      records: answers
        .slice(0, -1)
        .flat()
        .map((row) => ({ key: String(row.key), ...versionedRecordOf(row) })),
      left: { usual: Number(dueRow?.usual ?? 0), patient: Number(dueRow?.patient ?? 0) },
      nextDueAt: rowTimeOf(dueRow?.next),
    };
  }

  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<ListPage> {
    return listEvents(this.#prefix, filter, cursor, limit, first, async (statement) => {
      const [rows = []] = await this.#runBackground(statement);
      return rows;
    });
  }

  async scan(cursor: string | null, limit: number): Promise<ScanPage> {
    const [rows = []] = await this.#runBackground([
      `SELECT r.row_id, r.\`key\`, r.version, r.text, ${UNEXPIRED_SQL} AS is_there
      FROM ${this.#prefix}_records r WHERE r.row_id > ? ORDER BY r.row_id LIMIT ?`,
      Number(cursor ?? 0),
      limit,
    ]);
    const records = rows
      .filter((row) => Number(row.is_there) === 1)
      .map((row) => ({ key: String(row.key), ...versionedRecordOf(row) }));
    return { records, next: rows.length < limit ? null : String(rows.at(-1)?.row_id) };
  }

  async counts(): Promise<StoreCounts> {
    const from = await this.#dueBound.pollStart();
    const [rows = [], [dueRow] = []] = await this.#runBackground(...countEvents(this.#prefix, from));
    // A process that only counts polls nothing, so its counts move the bound as well.
    this.#dueBound.recordPoll(from, pollResultOf(dueRow));
    return countsIn(rows, rowTimeOf(dueRow?.oldest));
  }

  async prune(before: number): Promise<boolean> {
    const [[row] = []] = await this.#runBackground(...pruneRecords(this.#prefix, Math.floor(before)));
    return Number(row?.is_more) === 1;
  }

  async readNote(name: string): Promise<string | null> {
    const [[row] = []] = await this.#runBackground([
      `SELECT text FROM ${this.#prefix}_notes WHERE name = ?`,
      name,
    ]);
    return row === undefined ? null : String(row.text);
  }

  async writeNote(name: string, text: string): Promise<void> {
    const sql = `INSERT INTO ${this.#prefix}_notes (name, text) VALUES (?, ?) ON DUPLICATE KEY UPDATE text = ?`;
    await this.#runBackground([sql, name, text, text]);
  }

  async close(): Promise<void> {
    const openStore = await this.#opening?.catch(() => null);
    await Promise.all([openStore?.foreground.close(), openStore?.background.close()]);
  }
}

function versionedRecordOf(row: Row): VersionedRecord {
  return { version: String(row.version), record: decodeRecord(String(row.text)) };
}
