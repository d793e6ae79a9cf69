import { PayhooksError } from "../protocol/errors.ts";
import { propertyOf } from "../protocol/foreign-value.ts";
import type { Environment } from "../time/environment.ts";
import { withTimeout } from "../time/with-timeout.ts";
import { explainConnectionError, isRepeatable, NoAnswerError, NotSentError } from "./failure.ts";

/** A pool of `mysql2` or of `mysql2/promise`. Its address and user are used to make connections of the inbox's own. */
export interface MysqlPool {
  /** A pool is recognised by this method. It is never called. */
  getConnection(...given: never[]): unknown;
}

/** The address of a MySQL inbox: a URL, or a pool of `mysql2`. */
export type MysqlTarget = string | MysqlPool;

/** A value that is put into a statement. */
export type Value = string | number | null;

/** A statement, in which `?` stands for a value, or for a list of them. */
export type Statement = readonly [sql: string, ...values: (Value | readonly Value[])[]];

/** A row of an answer. Numbers may come as texts. */
export type Row = Readonly<Record<string, unknown>>;

/** The rows that a statement has read, or how many it has changed. */
export type StatementResult = readonly Row[] | { readonly affectedRows: number };

/** A connection of `mysql2/promise`, as far as it is used. */
export interface Connection {
  /** Identifies the connection: the pool hands out one wrapper for each use, but this object stays. */
  readonly connection: object;
  query(query: object): Promise<[unknown, unknown]>;
  release(): void;
  destroy(): void;
}

/** The part of `mysql2/promise` that is used. */
export interface Driver {
  createPool(settings: object): { getConnection(): Promise<Connection>; end(): Promise<void> };
  format(sql: string, values: unknown[]): string;
}

/** How often to try a transaction that has collided with another transaction. */
const MAX_ATTEMPTS = 4;
/** How long to wait for the end of connections. */
const CLOSE_TIMEOUT_MS = 1_000;

/**
 * The settings of a pool that its driver needs to connect to the same server as the same user. All others are about the
 * program's own answers.
 */
const COPIED_SETTINGS = [
  ...["host", "port", "socketPath", "localAddress", "stream", "ssl", "compress", "database", "user"],
  ...[
    "password",
    "password2",
    "password3",
    "passwordSha1",
    "insecureAuth",
    "authPlugins",
    "authSwitchHandler",
    "enableCleartextPlugin",
    "disableEval",
  ],
] as const;

/**
 * Settings of an address that are left out. The first one would undo the beginning of a session. Then values would be
 * escaped for another `sql_mode`. With the others, a statement fails instead of waiting until a connection is free.
 */
const IGNORED_SETTINGS = ["resetOnRelease", "waitForConnections", "queueLimit"] as const;

/** How rows are read, whatever the address says. */
const ROW_OPTIONS = { typeCast: true, rowsAsArray: false, nestTables: false, namedPlaceholders: false };

/**
 * The beginning of each session, independent of the server's and the user's defaults. `DEFAULT` would be one of those. Values are
 * escaped for this character set, which the server need not take from the handshake, and for this `sql_mode`. At level "read
 * committed", a statement locks the rows that it finds, and no gaps between them.
 */
function sessionSetupSql(timeoutMs: number): string {
  return `SET NAMES utf8mb4;
    SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', autocommit = 1, completion_type = 0,
    innodb_lock_wait_timeout = ${Math.max(1, Math.floor(timeoutMs / 1_000))}, sql_select_limit = 18446744073709551615,
    sql_safe_updates = 0, sql_big_selects = 1, unique_checks = 1, group_concat_max_len = 1000000;
    SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE`;
}

/** The settings of a connection to the target. Throws `ERR_OPTION_MISSING`, `ERR_OPTION_INVALID`. */
export function connectionSettingsOf(target: MysqlTarget | undefined): object {
  if (target === undefined || target === null || target === "") {
    throw new PayhooksError("ERR_OPTION_MISSING", "mysqlInbox was given no URL and no pool.", {
      fix: "Set it (check the environment variable), such as mysql://user:password@localhost:3306/shop. There is no default address.",
    });
  }
  if (typeof target === "string") {
    if (/^(?:mysql|mariadb):\/\//.test(target) && URL.canParse(target))
      return { uri: removeIgnoredSettings(target) };
    throw new PayhooksError("ERR_OPTION_INVALID", "The address that mysqlInbox was given cannot be read.", {
      fix: "Write it as mysql://user:password@host:3306/database, with user and password percent-encoded (encodeURIComponent) if they contain characters such as / ? # or %.",
    });
  }
  const config = [target, propertyOf(target, "pool")]
    .map((pool) => propertyOf(propertyOf(pool, "config"), "connectionConfig"))
    .find((found) => found !== undefined);
  if (config === undefined) {
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      "mysqlInbox was given something that is not a pool of mysql2.",
      {
        fix: "Give it createPool(…) of mysql2 or mysql2/promise, or a URL. It takes no single connection, and no cluster.",
      },
    );
  }
  const settings = COPIED_SETTINGS.map((name) => [name, propertyOf(config, name)] as const);
  // An earlier version of the driver complains of a setting that it does not know.
  return Object.fromEntries(settings.filter(([, value]) => value !== undefined));
}

/**
 * The driver lets an address replace settings that are false. So settings that are not taken are removed from the address itself.
 */
function removeIgnoredSettings(address: string): string {
  const url = new URL(address);
  for (const name of IGNORED_SETTINGS) url.searchParams.delete(name);
  return url.href;
}

export async function loadDriver(): Promise<Driver> {
  try {
    const loaded = (await import("mysql2/promise")) as unknown as Driver & { readonly default?: Driver };
    return loaded.default ?? loaded;
  } catch (cause) {
    throw new PayhooksError(
      "ERR_PEER_MISSING",
      "mysqlInbox needs the package mysql2, which is not installed.",
      {
        fix: "Install it: npm install mysql2",
        cause,
      },
    );
  }
}

/**
 * A few connections, which are made when they are needed. One that has failed is thrown away: the next may lead to
 * another server.
 */
export class Connections {
  /** How many bytes one packet may have, by the server's setting. */
  maxPacketBytes: number = Number.POSITIVE_INFINITY;
  readonly #driver: Driver;
  readonly #pool: ReturnType<Driver["createPool"]>;
  readonly #environment: Environment;
  readonly #timeoutMs: number;
  readonly #preparedConnections = new WeakSet<object>();
  readonly #busyConnections = new Set<Connection>();

  constructor(driver: Driver, settings: object, count: number, environment: Environment, timeoutMs: number) {
    this.#driver = driver;
    this.#environment = environment;
    this.#timeoutMs = timeoutMs;
    this.#pool = driver.createPool({
      ...settings,
      charset: "utf8mb4",
      // Of an update, the rows that it has found are counted: one that changes nothing was made too.
      flags: ["FOUND_ROWS"],
      multipleStatements: true,
      connectionLimit: count,
      // Both have to fit into the time for a delivery.
      connectTimeout: Math.ceil((timeoutMs * 2) / 3),
    });
  }

  /** The text of statements that the server gets in one packet. */
  textOf(statements: readonly Statement[]): string {
    return statements.map(([sql, ...values]) => this.#driver.format(sql, values)).join(";\n");
  }

  /** Sends statements, and returns the rows of each one that has rows. */
  async run(statements: readonly Statement[], limitMs?: number): Promise<readonly (readonly Row[])[]> {
    return (await this.send(this.textOf(statements), limitMs)).filter(Array.isArray);
  }

  /**
   * Sends a text of statements, and returns the answer of each one. If one fails, those behind it are not run, and a transaction
   * that it was in is rolled back. Rejects with {@link NotSentError} if nothing has left this process.
   */
  async send(text: string, limitMs: number = this.#timeoutMs): Promise<readonly StatementResult[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#use(await this.#connect(), text, limitMs);
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !isRepeatable(error)) throw error;
      }
    }
  }

  async #connect(): Promise<Connection> {
    const connecting = this.#pool.getConnection();
    const timeoutError = (): Error => new NoAnswerError("no connection became free in time");
    try {
      const connection = await withTimeout(
        this.#environment,
        this.#timeoutMs,
        () => connecting,
        timeoutError,
      );
      if (!this.#preparedConnections.has(connection.connection)) {
        await this.#query(connection, sessionSetupSql(this.#timeoutMs), this.#timeoutMs);
        this.#preparedConnections.add(connection.connection);
      }
      return connection;
    } catch (cause) {
      connecting.then(
        (connection) => connection.destroy(),
        () => {},
      );
      throw new NotSentError("there is no connection", { cause: explainConnectionError(cause) });
    }
  }

  async #use(connection: Connection, text: string, limitMs: number): Promise<readonly StatementResult[]> {
    try {
      const answers = await this.#query(connection, text, limitMs);
      connection.release();
      return answers;
    } catch (error) {
      // The server rolls back after a connection has ended, but not at once. A repetition would skip what is locked until then.
      if (isRepeatable(error) && (await this.#isRolledBack(connection, limitMs))) connection.release();
      else connection.destroy();
      throw error;
    }
  }

  async #isRolledBack(connection: Connection, limitMs: number): Promise<boolean> {
    return this.#query(connection, "ROLLBACK", limitMs).then(
      () => true,
      () => false,
    );
  }

  async #query(connection: Connection, sql: string, limitMs: number): Promise<readonly StatementResult[]> {
    const timeoutError = (): Error => new NoAnswerError(`no answer within ${limitMs} ms`);
    this.#busyConnections.add(connection);
    try {
      // Two statements at least have a list of answers. One alone would have its own.
      const query = (): Promise<[unknown, unknown]> =>
        connection.query({ ...ROW_OPTIONS, sql: `DO 0;\n${sql}` });
      const [answers] = await withTimeout(this.#environment, limitMs, query, timeoutError);
      return (answers as StatementResult[]).slice(1);
    } finally {
      this.#busyConnections.delete(connection);
    }
  }

  async close(): Promise<void> {
    const timeoutError = (): Error => new NoAnswerError("the connections do not end");
    await withTimeout(this.#environment, CLOSE_TIMEOUT_MS, () => this.#pool.end(), timeoutError).catch(
      () => {},
    );
    for (const connection of this.#busyConnections) connection.destroy();
  }
}
