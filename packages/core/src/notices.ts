import type { ErrorCode } from "./errors.ts";
import type { FlowName } from "./events.ts";
import type { GivenUp, HeldReason } from "./inbox/inbox.ts";

/** What a notice about one event says of it. Never a body, a key or a signature. */
export interface EventFacts {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly eventId: string;
  /** `payTxnId` or `idempotency_key`; for a body without a certain reading, a hash of it. */
  readonly id: string;
  readonly event: string;
  /** The payment's status; empty in the connect flow. */
  readonly status: string;
}

interface AboutEvent<Type extends string> extends EventFacts {
  readonly type: Type;
}

interface AboutHandler<Type extends string> extends AboutEvent<Type> {
  readonly handler: string;
  readonly attempt: number;
}

/** Everything that happens, for logs, metrics and traces. `type` discriminates. */
export type Notice =
  /** New, or progress from PENDING: stored, will run. */
  | (AboutEvent<"accepted"> & { readonly keyId: string | null; readonly previousAmount: string | null })
  /** A copy of what is stored: acknowledged, not run again. `resumed` when an earlier try died before its answer. */
  | (AboutEvent<"duplicate"> & { readonly resumed: boolean })
  /** A PENDING after the terminal status: acknowledged, not run. */
  | AboutEvent<"stale">
  /** Kept for a person. */
  | (AboutEvent<"held"> & { readonly reason: HeldReason; readonly detail: string | null })
  /** A person released or dropped a held entry. */
  | {
      readonly type: "replayed" | "discarded";
      readonly eventId: string;
      readonly by: string;
      readonly note: string;
    }
  /** Not accepted; `code` is the answer's. `why` tells more than the sender is told. */
  | {
      readonly type: "refused";
      readonly flow: FlowName;
      readonly code: ErrorCode;
      readonly httpStatus: number;
      readonly why: string;
      /** The sender's address as the adapter knows it, or null. */
      readonly source: string | null;
    }
  /** The same event is known with another amount, from another status or source. */
  | (AboutEvent<"amount-changed"> & { readonly previousAmount: string; readonly amount: string })
  | AboutHandler<"started">
  | (AboutHandler<"done"> & { readonly durationMs: number })
  | (AboutHandler<"retry"> & { readonly delayMs: number; readonly error: string })
  /** A handler will not be tried again; the event is held as soon as no other handler has tries left. */
  | (AboutHandler<"given-up"> & { readonly reason: GivenUp; readonly error: string })
  /** All handlers that wanted the event are through. */
  | AboutEvent<"finished">
  /** A handler may run, or have run, a second time: one of the three documented cases. */
  | (AboutEvent<"double-risk"> & {
      readonly why: "lease-lost" | "timeout" | "died-while-running" | "closed-while-running";
    })
  /** A job whose record is gone. */
  | { readonly type: "record-missing"; readonly eventId: string }
  /** A store or queue did not answer; the call is repeated. */
  | { readonly type: "inbox-error"; readonly during: string; readonly error: string }
  /** A worker stood still while jobs waited, and was replaced. */
  | { readonly type: "worker-replaced"; readonly why: string }
  /** The memory inbox was too small for the window: records of events signed before this time are gone. */
  | { readonly type: "window-shrunk"; readonly signedBefore: number }
  /** Repeated verification failures: a security signal (specification, Events). */
  | Alert
  /** Something about the set-up that works but should not stay. */
  | { readonly type: "warning"; readonly what: string; readonly fix: string };

/** Repeated failures within the rolling window. */
export interface Alert {
  readonly type: "alert";
  /**
   * `all-failing`: no delivery of this flow was authentic, from any source: probably a wrong or rotated key.
   * `probing`: others succeed, this source fails: probably an attack. `held-full`: see `docs/operations.md`.
   */
  readonly kind: "all-failing" | "probing" | "held-full";
  readonly flow: FlowName;
  /** The code of the failures. */
  readonly code: ErrorCode;
  /** The source with the failures, or null where it is not known or not the point. */
  readonly source: string | null;
  readonly failures: number;
  /** Sources with failures in the window. */
  readonly sources: number;
  readonly windowMs: number;
}

/** Lines that a person should see. `console` fits. */
export interface Logger {
  info(message: string, facts?: Readonly<Record<string, unknown>>): void;
  warn(message: string, facts?: Readonly<Record<string, unknown>>): void;
  error(message: string, facts?: Readonly<Record<string, unknown>>): void;
}

/** By default warnings and errors go to the console, and nothing else does. */
export const consoleLogger: Logger = {
  info: () => {},
  warn: (message, facts) => console.warn(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
  error: (message, facts) => console.error(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
};

/** Notices that may wait for a slow observer; beyond, the newest are dropped and counted. */
const MAX_PENDING = 10_000;

/** Takes notices on the path and hands them on off the path: an observer can neither slow nor break a delivery. */
export class NoticeBoard {
  readonly #log: Logger;
  #observer: ((notice: Notice) => void) | null = null;
  #pending: Notice[] = [];
  #dropped = 0;
  #scheduled = false;

  constructor(logger: Logger) {
    this.#log = logger;
  }

  /** Without an observer nobody hears of what goes as it should: such notices need not even be made. */
  get observed(): boolean {
    return this.#observer !== null;
  }

  observe(observer: (notice: Notice) => void): void {
    this.#observer = observer;
  }

  post(notice: Notice): void {
    if (this.#observer === null && !isLogged(notice)) return;
    if (this.#pending.length >= MAX_PENDING) {
      this.#dropped++;
      return;
    }
    this.#pending.push(notice);
    if (this.#scheduled) return;
    this.#scheduled = true;
    soon(() => this.flush());
  }

  /** Hands on what waits; also called at the close, so that the last lines are not lost. */
  flush(): void {
    this.#scheduled = false;
    const batch = this.#pending;
    this.#pending = [];
    for (const notice of batch) {
      try {
        this.#observer?.(notice);
      } catch (error) {
        safely(() => this.#log.error("the observer threw", { error: String(error) }));
      }
      safely(() => writeLine(this.#log, notice));
    }
    if (this.#dropped > 0) {
      const dropped = this.#dropped;
      this.#dropped = 0;
      safely(() => this.#log.warn(`${dropped} notices were dropped: the observer is too slow`));
    }
  }
}

/**
 * Off the path of the delivery. On Workers a timer or an immediate dies with the request that set it, and notices would
 * never be told: there it is the next microtask.
 */
const soon: (task: () => void) => void =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === "Cloudflare-Workers"
    ? queueMicrotask
    : setImmediate;

function safely(action: () => void): void {
  try {
    action();
  } catch {
    // A logger that throws must not break the path of a delivery.
  }
}

const LEVEL: Partial<Record<Notice["type"], "warn" | "error">> = {
  held: "warn",
  "given-up": "error",
  retry: "warn",
  "double-risk": "warn",
  "record-missing": "warn",
  "inbox-error": "error",
  "worker-replaced": "warn",
  "window-shrunk": "warn",
  alert: "error",
  warning: "warn",
};

function isLogged(notice: Notice): boolean {
  // Refused deliveries are an outsider's to make: they are counted by alerts, not logged one by one.
  return notice.type in LEVEL || (notice.type === "refused" && notice.httpStatus >= 500);
}

function writeLine(log: Logger, notice: Notice): void {
  if (!isLogged(notice)) return;
  const { type, ...facts } = notice;
  if (notice.type === "warning") log.warn(`${notice.what} ${notice.fix}`);
  else if (notice.type === "refused")
    log.error(`refused with ${notice.httpStatus} ${notice.code}: ${notice.why}`, {
      flow: notice.flow,
      source: notice.source,
    });
  else log[LEVEL[type] ?? "warn"](type, facts);
}
