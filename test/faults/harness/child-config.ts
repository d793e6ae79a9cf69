import type { KillAt } from "./kill-points.ts";
import type { LedgerConfig } from "./ledger.ts";

/** Broken inboxes that the suite must catch. */
export type Variant =
  /** It answers before it writes. */
  | "acknowledge-before-write"
  /** What has begun `SET NX` once is a duplicate. */
  | "set-nx"
  /** What has a record is a duplicate, whatever it says. */
  | "conflict-as-duplicate"
  /** What this process has sent to the store once is a duplicate. */
  | "old-guess"
  /** A copy is acknowledged although no replica is known to have the event. */
  | "copy-unsettled"
  /** What was handed out comes back to nobody. */
  | "taken-for-good"
  /** A lease is said to be renewed, and is not. */
  | "lease-not-renewed"
  /** Every write is sent twice, as a client does whose connection broke. No mistake. */
  | "writes-twice"
  /** The same, and what the first one wrote is taken for another's. */
  | "writes-twice-unrecognised";

/** Where the processes under test keep their events. */
export type InboxConfig =
  | {
      readonly kind: "redis";
      readonly target: string | { readonly sentinel: number };
      readonly replicas?: number;
    }
  | { readonly kind: "postgres"; readonly target: string; readonly pooled?: boolean }
  | { readonly kind: "mysql"; readonly target: string }
  | {
      readonly kind: "sqlite";
      readonly file: string;
      /** Path of the driver's module: the process under test is bundled, and it cannot be. */
      readonly driver: string;
    };

/** What SQLite is in the middle of when the process is killed. */
export type KillDuring = "checkpoint" | "pruning";

/** What a process under test is told, as JSON in its environment. */
export interface ChildConfig {
  readonly port: number;
  readonly log: string;
  readonly publicKey: string;
  readonly inbox: InboxConfig;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly run: "background" | "elsewhere";
  readonly concurrency: number;
  /** The longest sleep of a calm handler. */
  readonly handlerMs: number;
  /** Share of calm attempts that throw. */
  readonly throwRate: number;
  readonly maxAttempts: number;
  readonly timeoutMs: number;
  /** The wait before each further attempt. Default 100. */
  readonly backoffMs?: number;
  readonly seed: number;
  /** Another handler comes behind the one that writes the log. */
  readonly twoHandlers?: boolean;
  /** What dies in a handler is held: its start is written by itself. */
  readonly onCrash?: "hold";
  /** What is held is decided about at once. */
  readonly decision?: "replay" | "discard";
  readonly killAt?: KillAt;
  /** Kills the process while SQLite does this, this many microseconds after it has begun. */
  readonly killDuring?: { readonly what: KillDuring; readonly afterUs: number };
  /** The process is stopped (SIGSTOP) once it has asked for due records, before it reads the answer. */
  readonly stopsInTake?: boolean;
  readonly variant?: Variant;
  /** The secret of the webhooks about connected accounts. Left out: it takes none. */
  readonly connectSecret?: string;
  /** Handlers book into a ledger, deposits and withdrawals. */
  readonly ledger?: LedgerConfig;
}

/** From a process under test. */
export type FromChild =
  | { readonly type: "listening" }
  | { readonly type: "worked"; readonly ran: number; readonly failed: number };
/** To a process under test. */
export interface ToChild {
  readonly type: "work";
}

/** How long a process under test waits for its handlers after SIGTERM. */
export const GRACE_MS = 5_000;

export const CONFIG_VARIABLE = "PAYHOOKS_FAULTS_CHILD";
