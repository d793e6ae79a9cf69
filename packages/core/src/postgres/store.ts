import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { Inbox } from "../inbox/contract/inbox.ts";
import type {
  Counts,
  DueRecords,
  KnownRecord,
  ListCursor,
  Listed,
  ListOrder,
  RecordStore,
  Scanned,
  Swap,
  SwapResult,
  Versioned,
} from "../inbox/contract/store.ts";
import { decodeRecord } from "../inbox/record/codec.ts";
import { LANES, type Lane, type Lanes } from "../inbox/record/lane.ts";
import { ServerClock } from "../inbox/server-clock.ts";
import type { LoggerOption } from "../notices/logger.ts";
import type { Loss } from "../notices/notice.ts";
import type { SetupWarning } from "../notices/setup-warnings.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { countsIn } from "../sql/counts.ts";
import { DueBound, pollResultOf, timeOf } from "../sql/due-bound.ts";
import type { Clock } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { isPool, type PostgresTarget, type Row, type Statement, type Values } from "./client.ts";
import { type Connections, connections } from "./connections.ts";
import { isPooled } from "./failure.ts";
import { Hints } from "./hints.ts";
import { listEvents } from "./listing.ts";
import { explainedStart } from "./refusal.ts";
import { checkSchemaName, quoted } from "./schema.ts";
import { OPEN_MS, SchemaCheck } from "./schema-check.ts";
import type { Session } from "./session.ts";
import { runAgain } from "./sessions.ts";
import { PRUNED_AT_ONCE, type Statements, statementsFor } from "./statements.ts";
import { Writes } from "./swap.ts";
import { type LapseLook, TakenRecords } from "./taken-records.ts";

/** Above this number, due records are not counted exactly. */
const COUNTED_DUE = 1_000;

type Run = (statement: Statement, values: Values) => Promise<readonly Row[]>;

/** The records that one statement has found and taken. */
interface Polled extends Omit<DueRecords, "records"> {
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
interface Opened extends Connections {
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
  /** Where looks for ended leases begin. */
  readonly #endBound: DueBound;
  readonly #taken: TakenRecords;
  readonly #check: SchemaCheck;
  #opening: Promise<Opened> | null = null;

  constructor(target: PostgresTarget | undefined, options: PostgresStoreOptions) {
    const { schema = "payhooks", pooled = false, statementTimeoutMs = 1_500 } = options;
    const environment = environmentOf(options.clock);
    this.#target = target;
    this.#options = options;
    this.#schema = schema;
    this.#environment = environment;
    this.#clock = new ServerClock(environment);
    this.#check = new SchemaCheck(schema, options.migrate !== false, options.logger);
    this.#statements = statementsFor(schema);
    const serverNow = (): number => this.now();
    const boundBy = (lookAtAll: Statement): DueBound =>
      new DueBound({
        environment,
        statementTimeoutMs,
        serverNow,
        lookAtAll: async () => pollResultOf((await this.#runUpkeep(lookAtAll))[0]),
      });
    this.#dueBound = boundBy(this.#statements.lookAtAll);
    this.#endBound = boundBy(this.#statements.lookAtAllTaken);
    this.#taken = new TakenRecords(this.#endBound);
    this.#hints = null;
    const hasSessions = typeof target === "string" || isPool(target);
    if (!hasSessions || pooled) return;
    const upkeep = (statement: Statement) => this.#open().then((opened) => opened.upkeep.run(statement));
    const hints = new Hints({
      clock: environment,
      announce: () => upkeep(this.#statements.announce),
      keep: () => upkeep(this.#statements.listen),
    });
    this.#hints = hints;
    this.onDue = (wake) => hints.listen(wake);
  }

  get warnings(): readonly SetupWarning[] {
    return this.#check.warnings;
  }

  get datasetId(): string {
    return this.#check.datasetId;
  }

  async open(): Promise<void> {
    const opened = await this.#open();
    try {
      await this.#check.check(opened);
      const askedAt = this.#environment.monotonic();
      this.#learn(await opened.path.run({ ...this.#statements.time, givenClientLimitMs: OPEN_MS }), askedAt);
    } catch (error) {
      if (!isPooled(error)) throw explainedStart(error);
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

  async findLoss(known: readonly KnownRecord[]): Promise<Loss | null> {
    return this.#check.findLoss(await this.#open(), known);
  }

  #open(): Promise<Opened> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #connect(): Promise<Opened> {
    const { pooled = false, statementTimeoutMs = 1_500 } = this.#options;
    const opened = await connections({
      target: this.#target,
      schema: this.#schema,
      pooled,
      timeoutMs: statementTimeoutMs,
      environment: this.#environment,
      onNotification: () => this.#hints?.heard(),
    });
    const writes = new Writes({
      schema: this.#schema,
      sessions: opened.path,
      learn: (rows, askedAt) => this.#learn(rows, askedAt),
      monotonic: () => this.#environment.monotonic(),
      read: (session, keys) => this.#read(session, keys),
      versioned: versionedOf,
      forget: async (session, keys) => {
        await runAgain(session, this.#statements.forget, [keys]);
      },
    });
    return { ...opened, writes };
  }

  #learn(rows: readonly Row[], askedAt: number): void {
    const [row] = rows;
    if (row !== undefined) this.#clock.learn(Number(row.now), askedAt);
  }

  now(): number {
    return this.#clock.now();
  }

  async read(keys: readonly string[]): Promise<readonly (Versioned | null)[]> {
    if (keys.length === 0) return [];
    const { path } = await this.#open();
    return path.use((session) => this.#read(session, keys));
  }

  async #read(session: Session, keys: readonly string[]): Promise<readonly (Versioned | null)[]> {
    const askedAt = this.#environment.monotonic();
    const { read, readOne } = this.#statements;
    const [key] = keys;
    const isOne = key !== undefined && keys.length === 1;
    const rows = await (isOne ? runAgain(session, readOne, [key]) : runAgain(session, read, [keys]));
    this.#learn(rows, askedAt);
    // If there is no record, the only row has no key.
    const there = rows.filter((row) => row.key !== null);
    const found = new Map(there.map((row) => [String(row.key), versionedOf(row)]));
    return keys.map((key) => found.get(key) ?? null);
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    const { writes } = await this.#open();
    let results: readonly SwapResult[];
    try {
      results = await writes.swap(items);
    } finally {
      // A write whose outcome is unknown also counts as taken.
      for (const { index } of items)
        if (index.isLeased && index.dueAt !== null) this.#taken.noteTakenUntil(index.dueAt);
    }
    if (items.some(({ announce }, at) => announce && results[at]?.kind === "written")) this.#hints?.send();
    return results;
  }

  /**
   * Takes records, and then reads their texts. A statement that hands out texts would hold the locks of its records
   * until the last byte has left the server. If this process is stopped meanwhile, that may take hours.
   */
  async takeDue(limit: Lanes, hideMs: number): Promise<DueRecords> {
    const lanes = LANES.filter((lane) => limit[lane] > 0);
    if (lanes.length === 0) {
      const row = await this.#lookAtDue(COUNTED_DUE, (statement, values) => this.#poll(statement, values));
      return { records: [], left: leftBy(row), nextDueAt: timeOf(row?.next) };
    }
    for (const bound of [this.#dueBound, this.#endBound]) bound.throwFailure();
    const look = await this.#taken.nextLook(this.now(), hideMs);
    const polled: Polled[] = [];
    for (const lane of lanes) polled.push(await this.#take(lane, limit[lane], hideMs, look));
    const [first, second = first] = polled;
    if (first === undefined || second === undefined) throw new Error("no poll was made");
    const keys = polled.flatMap((one) => one.keys);
    const found = await this.read(keys);
    const records = keys.flatMap((key, at) => (found[at] ? [{ key, ...found[at] }] : []));
    // The second poll sees what the first poll has left and hidden.
    return { records, left: second.left, nextDueAt: second.nextDueAt };
  }

  async #take(lane: Lane, limit: number, hideMs: number, look: LapseLook | null): Promise<Polled> {
    const from = await this.#dueBound.from();
    const ends = [look?.from ?? null, look?.aheadMs ?? null];
    const rows = await this.#poll(this.#statements.takeDue, [limit, Math.ceil(hideMs), from, lane, ...ends]);
    const [first] = rows;
    const found = pollResultOf(first);
    this.#dueBound.learn(from, found);
    const keys = rows.flatMap(({ key }) => (typeof key === "string" ? [key] : []));
    if (look !== null) {
      this.#taken.learn(look, {
        now: found.now,
        oldest: timeOf(first?.lapsed_at),
        nextEndAt: timeOf(first?.next_end),
      });
    }
    if (keys.length > 0) this.#taken.noteTakenUntil(found.now + hideMs);
    return {
      keys,
      left: leftBy(first),
      nextDueAt: earliest(timeOf(first?.next), this.#taken.nothingEndsBefore),
    };
  }

  /**
   * Looks at all that is due, lapsed leases included, and takes nothing. It moves the bounds as a poll does, because a
   * process that only counts makes no polls.
   */
  async #lookAtDue(counted: number, run: Run): Promise<Row | undefined> {
    const [from, endsFrom] = [await this.#dueBound.from(), await this.#endBound.from()];
    const [row] = await run(this.#statements.lookAtDue, [counted, from, endsFrom]);
    const found = pollResultOf(row);
    this.#dueBound.learn(from, found);
    this.#endBound.learn(endsFrom, { now: found.now, oldest: timeOf(row?.lapsed_at) });
    return row;
  }

  async #poll(statement: Statement, values: Values): Promise<readonly Row[]> {
    const { path } = await this.#open();
    const askedAt = this.#environment.monotonic();
    const rows = await path.run(statement, values);
    this.#learn(rows, askedAt);
    return rows;
  }

  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<Listed> {
    return listEvents(quoted(this.#schema), filter, cursor, limit, first, (statement, values) =>
      this.#runUpkeep(statement, values),
    );
  }

  async scan(cursor: string | null, limit: number): Promise<Scanned> {
    const rows = await this.#runUpkeep(this.#statements.scan, [cursor ?? "0", limit]);
    const records = rows
      .filter((row) => row.is_there === true)
      .map((row) => ({ key: String(row.key), ...versionedOf(row) }));
    return { records, next: rows.length < limit ? null : String(rows.at(-1)?.row_id) };
  }

  async counts(): Promise<Counts> {
    const rows = await this.#runUpkeep(this.#statements.counts);
    const due = await this.#lookAtDue(1, (statement, values) => this.#runUpkeep(statement, values));
    return countsIn(rows, earliest(timeOf(due?.oldest), timeOf(due?.lapsed_at)));
  }

  async prune(before: number): Promise<boolean> {
    const [row] = await this.#runUpkeep(this.#statements.prune, [Math.floor(before)]);
    return Number(row?.n) === PRUNED_AT_ONCE;
  }

  async readNote(name: string): Promise<string | null> {
    const [row] = await this.#runUpkeep(this.#statements.readNote, [name]);
    return row === undefined ? null : String(row.text);
  }

  async writeNote(name: string, text: string): Promise<void> {
    await this.#runUpkeep(this.#statements.writeNote, [name, text]);
  }

  async #runUpkeep(statement: Statement, values: Values = []): Promise<readonly Row[]> {
    const { upkeep } = await this.#open();
    return upkeep.run(statement, values);
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => null);
    await opened?.path.close();
    await opened?.upkeep.close();
  }
}

function leftBy(row: Row | undefined): Lanes {
  return { usual: Number(row?.usual ?? 0), patient: Number(row?.patient ?? 0) };
}

function earliest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

function versionedOf(row: Row): Versioned {
  return { version: String(row.version), record: decodeRecord(String(row.text)) };
}
