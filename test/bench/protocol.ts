/** The messages between the bench and the server process. */

/** `fetch` is node:http behind the bridge of `@hono/node-server`; `node` is node:http alone, for peers. */
export type FrameworkName = "express" | "fastify" | "hono" | "next" | "fetch" | "node";

/** Other webhook libraries. */
export type PeerName = "octokit" | "bolt" | "stripe" | "standardwebhooks" | "svix";

/** RSA: payment callbacks; HMAC: connected-account webhooks. */
export type Scheme = "rsa" | "hmac";

/**
 * What a server does with a delivery. `bare`: read the bytes and answer. `inline`: what a good developer writes by
 * hand, with a key that is read once. `pem`: what people write today, with the PEM text in every call. `least`: a bound
 * for ours, see least.ts. `source`: a ready source of ours, in memory, for the deliveries of a peer's sender. `peer`: that sender's
 * own library. The others are ours, by inbox; `-accept` leaves the handlers to another process, so that only the accepting is measured.
 */
export type Mode =
  | "bare"
  | "inline"
  | "pem"
  | "least"
  | "memory"
  | "memory-accept"
  | "sqlite"
  | "sqlite-accept"
  | "redis"
  | "redis-accept"
  | "source"
  | "peer";

export interface Variant {
  readonly framework: FrameworkName;
  readonly scheme: Scheme;
  readonly mode: Mode;
  /** The sender of the deliveries, if it is not the service. */
  readonly peer?: PeerName;
  /** How long each handler takes. Default: no time at all. */
  readonly handlerMs?: number;
  /** Finished records that are kept in memory. Default: as many as by default. */
  readonly maxRecords?: number;
}

/** Secrets and addresses that the server process is started with. */
export interface Surroundings {
  readonly publicKey: string;
  readonly secret: string;
  readonly redisUrl: string | null;
  /** The folder of the built Next.js application; null: no variant is on it. */
  readonly nextApp: string | null;
  /** The module that exports the peers. */
  readonly peers: string | null;
}

/** Orders to the server process, one at a time. */
export type Order =
  /** A new server with a new receiver and an empty inbox, in place of all before, or beside them. */
  | { readonly do: "open"; readonly variant: Variant; readonly beside?: boolean }
  /** The counters, once so many events in all have been handled and nothing is left to do; of the newest server. */
  | { readonly do: "read"; readonly handled: number; readonly kept?: boolean; readonly of?: number }
  /** Handles what the receiver of a server has accepted for others. */
  | { readonly do: "work-off"; readonly of: number }
  /** Adds so many finished records to the inbox of the receiver, without HTTP. */
  | { readonly do: "fill"; readonly records: number }
  /** Begins to look where the time goes. */
  | { readonly do: "profile" }
  | { readonly do: "profiled" }
  | { readonly do: "end" };

export type InboxKind = "memory" | "sqlite" | "redis";

export interface Counters {
  readonly cpuUs: number;
  /** Calls of the handler since the first of these servers was opened. */
  readonly handled: number;
  /** The longest time that the event loop was away since the last reading. */
  readonly lagMs: number;
  /** Of the heap, without garbage; or of the SQLite file. Null unless asked for. */
  readonly keptBytes: number | null;
}

export interface Answers {
  readonly open: {
    readonly port: number;
    readonly path: string;
    readonly id: number;
    /** Of SQLite. */
    readonly file: string | null;
  };
  readonly read: Counters;
  readonly "work-off": null;
  readonly fill: null;
  readonly profile: null;
  /** Microseconds by place. */
  readonly profiled: Readonly<Record<string, number>>;
  readonly end: null;
}

export type Reply = { readonly ok: unknown } | { readonly error: string };
