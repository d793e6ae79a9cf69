/** The steps of docs/durability.md after each of which a process is killed. */
export const KILL_POINTS = [
  "1 verified",
  "2 claimed",
  "3 added",
  "4 barrier",
  "5 flagged",
  "6 begun",
  "7 started",
  "7 ran",
  "7 stored",
  "7 finished",
  "8 retried",
  "9 held",
] as const;

/** The same where `accept` does steps 2 to 5 in one transaction. */
export const KILL_POINTS_AT_ONCE: readonly KillPoint[] = KILL_POINTS.filter(
  (point) => point !== "3 added" && point !== "4 barrier" && point !== "5 flagged",
);

export type KillPoint = (typeof KILL_POINTS)[number];

/** Broken inboxes that the suite must catch. */
export type Variant =
  | "default-stalled-count"
  | "acknowledge-before-add"
  | "set-nx"
  | "flag-before-barrier"
  | "conflict-forgotten";

/** Where the processes under test keep their events. */
export type InboxConfig =
  | {
      readonly kind: "redis";
      readonly target: string | { readonly sentinel: number };
      readonly replicas?: number;
    }
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
  readonly stallCheckMs: number;
  readonly run: "background" | "elsewhere";
  readonly concurrency: number;
  /** The longest sleep of a calm handler. */
  readonly handlerMs: number;
  /** Share of calm tries that throw. */
  readonly throwRate: number;
  readonly maxTries: number;
  readonly timeoutMs: number;
  readonly seed: number;
  /** Kills the process when it is there for the n-th time. */
  readonly killAt?: { readonly point: KillPoint; readonly nth: number };
  /** Kills the process while SQLite does this, this many microseconds after it has begun. */
  readonly killDuring?: { readonly what: KillDuring; readonly afterUs: number };
  readonly variant?: Variant;
}

/** From a process under test. */
export type FromChild =
  | { readonly type: "listening" }
  | { readonly type: "worked"; readonly ran: number; readonly failed: number };
/** To a process under test. */
export interface ToChild {
  readonly type: "work";
}

export const CONFIG_VARIABLE = "PAYHOOKS_FAULTS_CHILD";
