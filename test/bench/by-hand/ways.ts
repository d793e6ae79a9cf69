/** The ways of receiving payment callbacks that are compared, and what the bench and a merchant's process tell each other. */

/** `check`, `queue`, `graphile` and `boss` are written by hand, the others are ours, by inbox. */
export const WAYS = ["check", "queue", "graphile", "boss", "memory", "sqlite", "redis", "postgres"] as const;
export type Way = (typeof WAYS)[number];

export const NAMES: Readonly<Record<Way, string>> = {
  check: "by hand: verify, keep nothing",
  queue: "by hand: verify, SET NX, BullMQ",
  graphile: "by hand: verify, INSERT, graphile-worker",
  boss: "by hand: verify, INSERT, pg-boss",
  memory: "ours, memory",
  sqlite: "ours, SQLite",
  redis: "ours, Redis",
  postgres: "ours, PostgreSQL",
};

export const BY_HAND: ReadonlySet<Way> = new Set(["check", "queue", "graphile", "boss"]);
export const ON_REDIS: ReadonlySet<Way> = new Set(["queue", "redis"]);
export const ON_POSTGRES: ReadonlySet<Way> = new Set(["graphile", "boss", "postgres"]);

/** Handlers that run at one time, where a way has such a bound. */
export const CONCURRENCY = 16;

/** The argument of a merchant's process. */
export interface Setup {
  readonly way: Way;
  readonly publicKey: string;
  /** Empty where the way needs none. */
  readonly redisUrl: string;
  /** Empty where the way needs none. */
  readonly postgresUrl: string;
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
