import { PayhooksError } from "../protocol/errors.ts";

/** A statement. If it has a name, it is planned once for each session. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** How long a given client may take for it, in milliseconds. Default: the limit of the session. */
  readonly givenClientLimitMs?: number;
  /** How long this statement may take, instead of the limit of the session, in milliseconds. */
  readonly timeLimitMs?: number;
}

/** A value that is bound in a statement. */
export type Value = string | number | null;

/** The values that are bound in a statement. */
export type Values = readonly (Value | readonly Value[])[];

export interface BoundStatement {
  readonly statement: Statement;
  readonly values: Values;
}

/** A row of an answer. */
export type Row = Readonly<Record<string, unknown>>;

/** Any client that runs a statement with its values, such as PGlite, or a client of your own behind a proxy. */
export interface QueryClient {
  /** Runs one statement, in which `$1` and so on stand for the values. */
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** A pool of `pg`. Its settings are used to make connections of the inbox's own. */
export interface PostgresPool extends QueryClient {
  readonly options: object;
}

/** The address of a PostgreSQL inbox: a URL, a pool of `pg`, or any client that runs statements. */
export type PostgresTarget = string | PostgresPool | QueryClient;

/** A client of `pg`, as far as it is used. */
export interface SessionClient {
  connect(): Promise<unknown>;
  query(query: {
    readonly text: string;
    readonly values?: unknown[];
    readonly name?: string;
  }): Promise<{ readonly rows: readonly unknown[] }>;
  on(event: "error" | "end" | "notification", listener: (value: unknown) => void): unknown;
  end(): Promise<void>;
  /** Lets the process end although the connection is open. */
  unref?(): void;
}

/** Parses nothing but booleans. */
const TEXT_PARSERS = {
  getTypeParser: (type: number) => (text: string) => (type === BOOLEAN_OID ? text === "t" : text),
};
/** The number of PostgreSQL's type. */
const BOOLEAN_OID = 16;

type ClientClass = new (settings: object) => SessionClient;

/** The part of a statement's time that connecting may take. Both have to fit into the time for a delivery. */
const CONNECT_TIME_SHARE = 2 / 3;

/** True for a pool of `pg`. */
export function isPool(target: PostgresTarget | undefined): target is PostgresPool {
  return typeof target === "object" && target !== null && "options" in target && "totalCount" in target;
}

/** Makes clients of `pg` that are independent of the program's own. */
export async function clientMaker(
  target: string | PostgresPool,
  timeoutMs: number,
  isPooled: boolean,
): Promise<() => SessionClient> {
  const ownSettings = {
    connectionTimeoutMillis: Math.ceil(timeoutMs * CONNECT_TIME_SHARE),
    keepAlive: true,
    // PgBouncer refuses it as a parameter at the start of a session. So a pooler that was not announced is noticed at
    // once, before the settings of a session reach the program's own statements through it.
    statement_timeout: isPooled ? undefined : timeoutMs,
    query_timeout: undefined,
    lock_timeout: undefined,
    // Answers are texts, whatever parsers and formats the program has chosen for its own.
    types: TEXT_PARSERS,
    binary: false,
  };
  if (typeof target === "string") {
    checkUrl(target);
    const Client = await loadClient();
    return () => new Client({ application_name: "payhooks", ...ownSettings, connectionString: target });
  }
  const Client = (target as { readonly Client?: ClientClass }).Client ?? (await loadClient());
  const settings = target.options as { readonly password?: unknown };
  // A pool hides its password from copies of its options.
  return () =>
    new Client({ application_name: "payhooks", ...settings, password: settings.password, ...ownSettings });
}

function checkUrl(target: string): void {
  if (/^postgres(?:ql)?:\/\//.test(target) && URL.canParse(target)) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "The address that postgresInbox was given cannot be read.", {
    fix: "Write it as postgres://user:password@host:5432/database, with user and password percent-encoded (encodeURIComponent) if they contain characters such as / ? # or %.",
  });
}

async function loadClient(): Promise<ClientClass> {
  try {
    const loaded = (await import("pg")) as unknown as {
      readonly Client?: ClientClass;
      readonly default: { readonly Client: ClientClass };
    };
    return loaded.Client ?? loaded.default.Client;
  } catch (cause) {
    throw new PayhooksError(
      "ERR_PEER_MISSING",
      "postgresInbox needs the package pg, which is not installed.",
      {
        fix: "Install it: npm install pg",
        cause,
      },
    );
  }
}
