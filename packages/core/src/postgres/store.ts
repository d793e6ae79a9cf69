import type { EventFilter } from "../inbox/events.ts";
import type { Inbox } from "../inbox/inbox.ts";
import { decodeRecord } from "../inbox/record/codec.ts";
import { ServerClock } from "../inbox/server-clock.ts";
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
} from "../inbox/store.ts";
import type { GivenLogger } from "../notices/logger.ts";
import type { Loss } from "../notices/notice.ts";
import { SetupWarnings } from "../notices/setup-warnings.ts";
import { checkTime } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { clientMaker, isPool, type PostgresTarget, type Row, type Statement, type Values } from "./client.ts";
import { DueBound, type Found } from "./due-bound.ts";
import { isForbidden, isMissing, isPooled, isReadOnly } from "./failure.ts";
import { Hints } from "./hints.ts";
import { listEvents } from "./listing.ts";
import { explainedStart } from "./refusal.ts";
import {
  checkSchemaName,
  isWhole,
  look,
  migration,
  missing,
  noTables,
  quoted,
  refill,
  SCHEMA_VERSION,
  wrongVersion,
} from "./schema.ts";
import { GivenSession, PgSession, type Session } from "./session.ts";
import { runAgain, Sessions } from "./sessions.ts";
import { listenTo, MAX_AGE_MS, PRUNED_AT_ONCE, type Statements, statementsFor } from "./statements.ts";
import { checkSuitability, suitability } from "./suitability.ts";
import { Writes } from "./swap.ts";

/** How many connections are on the path of a delivery. One more is for lists, counts, pruning and hints. */
const ON_THE_PATH = 2;
/** A given client may have to wake its server for the first statement, or create the tables. */
const OPEN_MS = 30_000;

/** Above this number, due records are not counted exactly. */
const COUNTED_DUE = 1_000;

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /** The schema of the tables. Default `payhooks`. At most 40 characters of a to z, 0 to 9 and _. */
  readonly schema?: string | undefined;
  /** Makes the tables at the start. Default true. Use false if the role may not: see {@link postgresMigration}. */
  readonly migrate?: boolean | undefined;
  /**
   * Set it if a pooler gives each statement to another session, as PgBouncer does in transaction mode. Default false. The store
   * then does without named statements and notifications, so events of other processes are found only by looking.
   */
  readonly pooled?: boolean | undefined;
  /** The time after which a statement is given up. Default 1.5 s; keep it below `acceptTimeoutMs`. */
  readonly statementTimeoutMs?: number | undefined;
  /** Where warnings at the start are logged. Default: they are notices of the receiver, which its logger gets. */
  readonly logger?: GivenLogger | undefined;
  /** For tests: everything that the store takes from outside, except PostgreSQL itself. */
  readonly environment?: Environment | undefined;
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

/** What a store has once it is connected. */
interface Opened {
  readonly sessions: Sessions;
  /** One session, for statements that may take longer, so that no delivery waits for them. */
  readonly upkeep: Sessions;
  readonly writes: Writes;
}

/** By which the data is recognised. */
interface Data {
  readonly identity: string;
  /** The number of each table. */
  readonly tables: string;
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
  readonly #dueBound: DueBound;
  #opening: Promise<Opened> | null = null;
  #data: Data = { identity: "", tables: "" };
  /** The row that names the data was missing, and was made again. It is told at the next look. */
  #wasEmptied = false;
  readonly #warnings: SetupWarnings;
  #isWarned = false;

  constructor(target: PostgresTarget | undefined, options: PostgresStoreOptions) {
    const {
      schema = "payhooks",
      pooled = false,
      statementTimeoutMs = 1_500,
      environment = environmentOf(),
    } = options;
    this.#target = target;
    this.#options = options;
    this.#schema = schema;
    this.#environment = environment;
    this.#clock = new ServerClock(environment);
    this.#warnings = new SetupWarnings(options.logger);
    this.#statements = statementsFor(schema);
    this.#dueBound = new DueBound({
      environment,
      // A statement and its answer have a limit each, and clocks and commits some more.
      lateMs: 2 * MAX_AGE_MS + 2 * statementTimeoutMs,
      serverNow: () => this.now(),
      lookAtAll: async () => foundBy((await this.#keepUp(this.#statements.lookAtAll))[0]),
    });
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

  get warnings(): SetupWarnings["all"] {
    return this.#warnings.all;
  }

  get identity(): string {
    return this.#data.identity;
  }

  async open(): Promise<void> {
    const opened = await this.#open();
    try {
      await this.#check(opened);
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
    const opened = await this.#open();
    const before = this.#data;
    try {
      const [found] = await opened.upkeep.run(look(this.#schema));
      if (isUsable(found)) this.#data = dataOf(found);
      else await this.#repair(opened);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await this.#repair(opened);
    }
    const isReplaced =
      this.#wasEmptied || this.#data.identity !== before.identity || this.#data.tables !== before.tables;
    this.#wasEmptied = false;
    if (isReplaced) return "replaced";
    return (await this.#isMissing(opened, known)) ? "missing" : null;
  }

  /** Makes what is missing of the tables. If it cannot be made, every write says so. */
  async #repair(opened: Opened): Promise<void> {
    this.#data = { identity: "", tables: "" };
    await this.#check(opened).catch(() => {});
  }

  async #isMissing({ upkeep }: Opened, known: readonly KnownRecord[]): Promise<boolean> {
    if (known.length === 0) return false;
    const numberOf = (is: boolean): number => (is ? 1 : 0);
    const [row] = await upkeep.run(missing(this.#schema), [
      known.map(({ key }) => key),
      known.map(({ version }) => version),
      known.map(({ index }) => numberOf(index.events.length > 0)),
      known.map(({ index }) => numberOf(index.events.some(({ state }) => state !== "finished"))),
    ]);
    return Number(row?.n) > 0;
  }

  #open(): Promise<Opened> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #connect(): Promise<Opened> {
    const make = await this.#sessionMaker();
    const { statementTimeoutMs = 1_500 } = this.#options;
    const path = isQueryClient(this.#target)
      ? [make(false)]
      : Array.from({ length: ON_THE_PATH }, () => make(false));
    const sessions = new Sessions(path, this.#environment, statementTimeoutMs);
    const writes = new Writes({
      schema: this.#schema,
      sessions,
      learn: (rows, askedAt) => this.#learn(rows, askedAt),
      monotonic: () => this.#environment.monotonic(),
      read: (session, keys) => this.#read(session, keys),
      versioned: versionedOf,
      forget: async (session, keys) => {
        await runAgain(session, this.#statements.forget, [keys]);
      },
    });
    const upkeep = new Sessions([make(true)], this.#environment, statementTimeoutMs);
    return { sessions, upkeep, writes };
  }

  async #sessionMaker(): Promise<(listens: boolean) => Session> {
    const target = this.#target;
    if (target === undefined || target === null || target === "") {
      throw new PayhooksError("ERR_OPTION_MISSING", "postgresInbox was given no URL and no pool.", {
        fix: "Set it (is the environment variable there?), such as postgres://user:password@localhost:5432/shop. There is no default address.",
      });
    }
    const { pooled = false, statementTimeoutMs: timeoutMs = 1_500 } = this.#options;
    checkTime("statementTimeoutMs", timeoutMs);
    if (isQueryClient(target)) return () => new GivenSession(target, this.#environment, timeoutMs);
    const make = await clientMaker(target, timeoutMs, pooled);
    return (listens) =>
      new PgSession({
        make,
        environment: this.#environment,
        timeoutMs,
        begin: pooled ? null : beginning(timeoutMs, listens ? this.#schema : null),
        onNotification: listens ? () => this.#hints?.heard() : undefined,
      });
  }

  async #check({ sessions }: Opened): Promise<void> {
    const schema = this.#schema;
    const statement = { ...look(schema), limitMs: OPEN_MS };
    let found: Row | undefined;
    try {
      [found] = await sessions.run(statement);
      if (found !== undefined && Number(found.version) !== SCHEMA_VERSION) {
        throw wrongVersion(schema, Number(found.version));
      }
      // Whoever makes the tables makes this row in the same transaction, so somebody has deleted it.
      this.#wasEmptied ||= found === undefined;
      if (found === undefined && this.#options.migrate === false) await sessions.run(refill(schema));
      if (!isUsable(found)) [found] = await this.#make(sessions, statement);
    } catch (error) {
      if (!isMissing(error)) throw error;
      [found] = await this.#make(sessions, statement, error);
    }
    if (!isUsable(found)) throw noTables(schema, "or they are incomplete");
    const [suited] = await sessions.run({ ...suitability(schema), limitMs: OPEN_MS });
    checkSuitability(schema, suited);
    this.#data = dataOf(found);
    const askedAt = this.#environment.monotonic();
    this.#learn(await sessions.run({ ...this.#statements.time, limitMs: OPEN_MS }), askedAt);
    this.#warn(found);
  }

  /** Makes the tables, or what is missing of them, and looks again. */
  async #make(sessions: Sessions, statement: Statement, cause?: unknown): Promise<readonly Row[]> {
    if (this.#options.migrate === false) {
      if (cause !== undefined) throw noTables(this.#schema, "and migrate is false", cause);
      return sessions.run(statement);
    }
    try {
      await sessions.run({ name: "", text: migration(this.#schema), limitMs: OPEN_MS });
    } catch (error) {
      if (isForbidden(error)) {
        const why = "and this role may not create them: it lacks CREATE on the database or on the schema";
        throw noTables(this.#schema, why, error);
      }
      if (isReadOnly(error)) throw noTables(this.#schema, "and this server accepts no writes", error);
      throw error;
    }
    return sessions.run(statement);
  }

  #warn(found: Row): void {
    if (this.#isWarned) return;
    this.#isWarned = true;
    const off = ["synchronous_commit", "fsync", "full_page_writes"].filter((name) => found[name] === "off");
    for (const name of off) {
      this.#warnings.add(
        `PostgreSQL runs with ${name} = off: acknowledged events are lost if its machine crashes.`,
        "Set it to on.",
      );
    }
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
    const { sessions } = await this.#open();
    return sessions.use((session) => this.#read(session, keys));
  }

  async #read(session: Session, keys: readonly string[]): Promise<readonly (Versioned | null)[]> {
    const askedAt = this.#environment.monotonic();
    const rows = await runAgain(session, this.#statements.read, [keys]);
    this.#learn(rows, askedAt);
    // If there is no record, the only row has no key.
    const there = rows.filter((row) => row.key !== null);
    const found = new Map(there.map((row) => [String(row.key), versionedOf(row)]));
    return keys.map((key) => found.get(key) ?? null);
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    const { writes } = await this.#open();
    const results = await writes.swap(items);
    if (items.some(({ announce }, at) => announce && results[at]?.kind === "written")) this.#hints?.send();
    return results;
  }

  async takeDue(limit: number, hideMs: number): Promise<DueRecords> {
    const { sessions } = await this.#open();
    const from = await this.#dueBound.from();
    const askedAt = this.#environment.monotonic();
    const rows =
      limit === 0
        ? await sessions.run(this.#statements.lookAtDue, [COUNTED_DUE, from])
        : await sessions.run(this.#statements.takeDue, [limit, hideMs, from]);
    this.#learn(rows, askedAt);
    const [first] = rows;
    this.#dueBound.learn(from, foundBy(first));
    return {
      records: rows.flatMap((row) =>
        typeof row.key === "string" ? [{ key: row.key, ...versionedOf(row) }] : [],
      ),
      left: Number(first?.n ?? 0),
      nextDueAt: first?.next === null || first === undefined ? null : Number(first.next),
    };
  }

  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<Listed> {
    return listEvents(quoted(this.#schema), filter, cursor, limit, first, (statement, values) =>
      this.#keepUp(statement, values),
    );
  }

  async scan(cursor: string | null, limit: number): Promise<Scanned> {
    const rows = await this.#keepUp(this.#statements.scan, [cursor ?? "0", limit]);
    const records = rows
      .filter((row) => row.is_there === true)
      .map((row) => ({ key: String(row.key), ...versionedOf(row) }));
    return { records, next: rows.length < limit ? null : String(rows.at(-1)?.place) };
  }

  async counts(): Promise<Counts> {
    const rows = await this.#keepUp(this.#statements.counts);
    const [due] = await this.#keepUp(this.#statements.lookAtDue, [1, await this.#dueBound.from()]);
    const counts = { waiting: 0, retrying: 0, running: 0, held: 0 };
    const heldBy: Partial<Record<HeldReason, number>> = {};
    for (const row of rows) {
      const n = Number(row.n);
      counts[row.state as keyof typeof counts] += n;
      if (row.reason !== null) heldBy[row.reason as HeldReason] = n;
    }
    const oldest = due?.oldest ?? null;
    return { ...counts, heldBy, oldestDueAt: oldest === null ? null : Number(oldest) };
  }

  async prune(before: number): Promise<boolean> {
    const [row] = await this.#keepUp(this.#statements.prune, [Math.floor(before)]);
    return Number(row?.n) === PRUNED_AT_ONCE;
  }

  async readNote(name: string): Promise<string | null> {
    const [row] = await this.#keepUp(this.#statements.readNote, [name]);
    return row === undefined ? null : String(row.text);
  }

  async writeNote(name: string, text: string): Promise<void> {
    await this.#keepUp(this.#statements.writeNote, [name, text]);
  }

  async #keepUp(statement: Statement, values: Values = []): Promise<readonly Row[]> {
    const { upkeep } = await this.#open();
    return upkeep.run(statement, values);
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => null);
    await opened?.sessions.close();
    await opened?.upkeep.close();
  }
}

function dataOf({ identity, tables }: Row): Data {
  return { identity: String(identity), tables: String(tables) };
}

/** Whether all tables are there, and the row that names them. */
function isUsable(found: Row | undefined): found is Row {
  return found !== undefined && isWhole(String(found.tables));
}

/** True for a client that is used as it is. */
function isQueryClient(target: PostgresTarget | undefined): target is Exclude<PostgresTarget, string> {
  return typeof target === "object" && target !== null && !isPool(target);
}

/**
 * Settings for the beginning of a session, whatever the role's own settings are. Each statement is a transaction at level "read
 * committed", is not compiled, and finds its rows by an index even before the server has statistics about them.
 */
function beginning(timeoutMs: number, listensTo: string | null): string {
  const settings = [
    `SET statement_timeout = ${timeoutMs}`,
    "SET default_transaction_isolation = 'read committed'",
    "SET jit = off",
    "SET enable_seqscan = off",
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
  ];
  if (listensTo !== null) settings.push(listenTo(listensTo));
  return settings.join("; ");
}

function foundBy(row: Row | undefined): Found {
  const oldest = row?.oldest ?? null;
  return { now: Number(row?.now ?? 0), oldest: oldest === null ? null : Number(oldest) };
}

function versionedOf(row: Row): Versioned {
  return { version: String(row.version), record: decodeRecord(String(row.text)) };
}
