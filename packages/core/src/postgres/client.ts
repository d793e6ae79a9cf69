import { PayhooksError } from "../protocol/errors.ts";

/** A statement. One with a name is planned once for each session. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** What is bound in a statement. */
export type Values = readonly (
  | string
  | number
  | null
  | readonly (string | null)[]
  | readonly (number | null)[]
)[];

/** A row of an answer. */
export type Row = Readonly<Record<string, unknown>>;

/** Any client that runs a statement with its values: PGlite, or one behind a proxy of your own. */
export interface QueryClient {
  /** Runs one statement; `$1` and so on in it stand for the values. */
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** A pool of `pg`, whose settings are used to make connections beside it. */
export interface PostgresPool extends QueryClient {
  readonly options: object;
}

/** What a PostgreSQL inbox is kept in: a URL, a pool of `pg`, or any client that runs statements. */
export type PostgresTarget = string | PostgresPool | QueryClient;

/** A client of `pg`, as far as it is used. */
export interface PgClient {
  connect(): Promise<unknown>;
  query(query: {
    readonly text: string;
    readonly values?: unknown[];
    readonly name?: string;
  }): Promise<{ readonly rows: readonly unknown[] }>;
  on(event: "error" | "end" | "notification", listener: (value: unknown) => void): unknown;
  end(): Promise<void>;
}

type ClientClass = new (settings: object) => PgClient;

/** Of the time for a statement: both have to fit into the time for a delivery. */
const TO_CONNECT = 2 / 3;

/** True for a pool of `pg`. */
export function isPool(target: PostgresTarget | undefined): target is PostgresPool {
  return typeof target === "object" && target !== null && "options" in target && "totalCount" in target;
}

/** Makes clients of `pg` that have nothing to do with the program's own. */
export async function clientMaker(target: string | PostgresPool, timeoutMs: number): Promise<() => PgClient> {
  const own = {
    connectionTimeoutMillis: Math.ceil(timeoutMs * TO_CONNECT),
    keepAlive: true,
    // They are set by a statement where there is a session: poolers refuse them at the start of one.
    statement_timeout: undefined,
    query_timeout: undefined,
    lock_timeout: undefined,
    // Answers are read here, whatever the program makes of its own.
    types: undefined,
  };
  if (typeof target === "string") {
    checkUrl(target);
    const Client = await loadClient();
    return () => new Client({ application_name: "payhooks", ...own, connectionString: target });
  }
  const Client = (target as { readonly Client?: ClientClass }).Client ?? (await loadClient());
  const settings = target.options as { readonly password?: unknown };
  // A pool hides its password from copies of its options.
  return () => new Client({ application_name: "payhooks", ...settings, password: settings.password, ...own });
}

function checkUrl(target: string): void {
  if (/^postgres(?:ql)?:\/\//.test(target) && URL.canParse(target)) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "The address that postgresInbox was given cannot be read.", {
    fix: "Write it as postgres://user:password@host:5432/database, user and password percent-encoded (encodeURIComponent) where they have characters such as / ? # or %.",
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
