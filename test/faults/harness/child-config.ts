import type { KillAt } from "./kill-points.ts";
import type { LedgerConfig } from "./ledger.ts";

/** Broken inboxes that the suite must catch. */
export type Variant =
  /** It answers before it writes. */
  | "acknowledge-before-write"
  /** It takes every event for a duplicate for which `SET NX` was sent before. */
  | "set-nx"
  /** It takes every event that has a record for a duplicate, whatever the record says. */
  | "conflict-as-duplicate"
  /** It takes every event for a duplicate that this process has sent to the store before. */
  | "old-guess"
  /** A copy is acknowledged although no replica is known to have the event. */
  | "copy-unreplicated"
  /** A due record that was handed out is never handed out again. */
  | "taken-for-good"
  /** It reports a renewal of a lease, and renews nothing. */
  | "lease-not-renewed"
  /** Every write is sent twice, as a client does whose connection broke. No mistake. */
  | "writes-twice"
  /** The same, and the inbox takes its own first write for another process's. */
  | "writes-twice-unrecognised";

/** The inbox of the processes under test. */
export type InboxConfig =
  | {
      readonly kind: "redis";
      /** An address, or the port of a Sentinel or of a node of a cluster. */
      readonly target: string | { readonly sentinel: number } | { readonly cluster: number };
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

/** The act of SQLite during which the process is killed. */
export type KillDuring = "checkpoint" | "pruning";

/** A bulk replay, which several processes can carry out one after the other. */
export interface BulkConfig {
  readonly name: string;
  /** Only events that were accepted before this time. */
  readonly until: number;
  readonly perSecond: number;
}

/** How a process tells of incidents. */
export interface AlertsConfig {
  /** A Slack-compatible webhook. */
  readonly url: string;
  /** The clock of alerts runs so many times as fast as real time since this moment. */
  readonly speed: number;
  readonly since: number;
}

/** The configuration of a process under test, as JSON in its environment. */
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
  /** An event whose process dies in its handler is held. So the start of the handler is a write of its own. */
  readonly onCrash?: "hold";
  /** Somebody decides about each held event at once. */
  readonly decision?: "replay" | "discard";
  readonly killAt?: KillAt;
  /** Kills the process while SQLite does this, this many microseconds after it has begun. */
  readonly killDuring?: { readonly what: KillDuring; readonly afterUs: number };
  /** The process is stopped (SIGSTOP) once it has asked for due records, before it reads the answer. */
  readonly stopsInTake?: boolean;
  /** The signed text is kept for a day after the end. */
  readonly keeps?: boolean;
  /** At its start, the process replays what has finished. */
  readonly bulk?: BulkConfig;
  readonly variant?: Variant;
  /** The secret of the webhooks about connected accounts. Left out: it takes none. */
  readonly connectSecret?: string;
  /** The process tells of incidents, on a clock that all processes share. */
  readonly alerts?: AlertsConfig;
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
