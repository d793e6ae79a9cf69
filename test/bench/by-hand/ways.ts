/** The ways of receiving payment callbacks that are compared, and what the bench and a merchant's process tell each other. */

/** The ways that are written by hand. */
export const BY_HAND = ["check", "queue", "graphile", "boss", "table"] as const;
/** Ours, by inbox. */
export const OURS = ["memory", "sqlite", "redis", "postgres", "mysql"] as const;

export type OurWay = (typeof OURS)[number];
export type Way = (typeof BY_HAND)[number] | OurWay;
export const WAYS: readonly Way[] = [...BY_HAND, ...OURS];

export const NAMES: Readonly<Record<Way, string>> = {
  check: "by hand: verify, keep nothing",
  queue: "by hand: verify, SET NX, BullMQ",
  graphile: "by hand: verify, INSERT, graphile-worker",
  boss: "by hand: verify, INSERT, pg-boss",
  table: "by hand: verify, INSERT, a table as the queue",
  memory: "ours, memory",
  sqlite: "ours, SQLite",
  redis: "ours, Redis",
  postgres: "ours, PostgreSQL",
  mysql: "ours, MariaDB",
};

export type ServerKind = "Redis" | "PostgreSQL" | "MariaDB";

/** The server of its own that a way has. */
export const SERVER_OF: Readonly<Partial<Record<Way, ServerKind>>> = {
  queue: "Redis",
  redis: "Redis",
  graphile: "PostgreSQL",
  boss: "PostgreSQL",
  postgres: "PostgreSQL",
  table: "MariaDB",
  mysql: "MariaDB",
};

/** Handlers that run at one time, where a way has such a bound. */
export const CONCURRENCY = 16;

/** The argument of a merchant's process. */
export interface Setup {
  readonly way: Way;
  readonly publicKey: string;
  /** Of its server; empty where it has none. */
  readonly url: string;
  /** For SQLite. */
  readonly file: string;
}

/** An order to a merchant's process: so many events come now, and each handler takes so long. */
export interface Turn {
  readonly events: number;
  readonly handlerMs: number;
}

/** The messages of a merchant's process, in this order: the first once, the others in every turn. */
export interface Told {
  readonly listening: { readonly port: number; readonly path: string; readonly node: string };
  readonly begun: null;
  /** Every handler has ended, and the end of each is recorded. */
  readonly recorded: null;
  /** Processor time of this process in the whole turn, microseconds. */
  readonly cost: { readonly cpuUs: number };
  readonly failed: string;
}

export type Message = Partial<Told>;
