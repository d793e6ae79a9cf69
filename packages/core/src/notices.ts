import type { Clock } from "./clock.ts";
import type { ErrorCode } from "./errors.ts";
import type { FlowName } from "./events.ts";
import { describeError, originOf } from "./foreign-error.ts";
import type { GivenUp, HeldReason } from "./inbox/inbox.ts";
import type { LogLines } from "./log-lines.ts";
import { lineOfThrown } from "./thrown.ts";

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
  /** The merchant's reference of a payment; null in the connect flow, and where the reading is not certain. */
  readonly referenceId: string | null;
}

interface AboutEvent<Type extends string> extends EventFacts {
  readonly type: Type;
}

interface AboutHandler<Type extends string> extends AboutEvent<Type> {
  readonly handler: string;
  readonly attempt: number;
}

/** What a handler has thrown. Only the line is stored with the event. */
interface ThrownByHandler {
  /** In one line of at most 500 characters. */
  readonly error: string;
  /** The stack, and those of its causes, at most 4,000 characters; null where there is none. */
  readonly stack: string | null;
}

/** Everything that happens, for logs, metrics and traces. `type` discriminates. */
export type Notice = Happening & {
  /** When it happened, in milliseconds since the epoch on the receiver's clock. */
  readonly at: number;
};

/** A notice before the receiver has added its time. */
export type Happening =
  /** New, or progress from PENDING: stored, will run. */
  | (AboutEvent<"accepted"> & { readonly keyId: string | null; readonly previousAmount: string | null })
  /** A copy of what is stored: acknowledged, not run again. */
  | AboutEvent<"duplicate">
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
      /** The sender's address as the adapter knows it, at most 64 characters of it, or null. */
      readonly source: string | null;
      /** With the first bad signature of a source within the alerts' window: its likely cause, and what to do. */
      readonly fix: string | null;
      /** Where the error was thrown that is the reason, without its message; null where there was none. */
      readonly stack: string | null;
    }
  /** The same event is known with another amount, from another status or source. */
  | (AboutEvent<"amount-changed"> & { readonly previousAmount: string; readonly amount: string })
  | AboutHandler<"started">
  | (AboutHandler<"done"> & { readonly durationMs: number })
  | (AboutHandler<"retry"> & { readonly delayMs: number } & ThrownByHandler)
  /** A handler will not be tried again; the event is held as soon as no other handler has tries left. */
  | (AboutHandler<"given-up"> & { readonly reason: GivenUp } & ThrownByHandler)
  /** All handlers that wanted the event are through. */
  | AboutEvent<"finished">
  /** A handler may run, or have run, a second time: one of the three documented cases. */
  | (AboutEvent<"double-risk"> & {
      readonly why:
        | "lease-lost"
        | "timeout"
        | "died-while-running"
        | "closed-while-running"
        /** A replay with `evenIfExpired`: the record of an earlier run may have expired. */
        | "replayed-after-expiry";
    })
  /** Somebody asked for an event to be run of which there is no record. */
  | { readonly type: "record-missing"; readonly eventId: string }
  /** The inbox's store did not answer, or refused; the call is repeated. */
  | {
      readonly type: "inbox-error";
      readonly during: string;
      /** Kind and codes; of a store's own words, which may hold what it was given, only known ones. */
      readonly error: string;
      /** Where it was thrown, without its message; null where nothing says so. */
      readonly stack: string | null;
    }
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
   * `all-failing`: nothing of this flow was authentic since the first of these failures, whatever their sources:
   * probably a wrong or rotated key. `probing`: others succeed in between: probably an attack. `held-full`: see
   * `docs/operations.md`.
   */
  readonly kind: "all-failing" | "probing" | "held-full";
  readonly flow: FlowName;
  /** The code of the failures. */
  readonly code: ErrorCode;
  /** The source with the failures; null where it is not known, not the point, or one of too many to name each. */
  readonly source: string | null;
  readonly failures: number;
  /** Sources with failures in the window. */
  readonly sources: number;
  readonly windowMs: number;
}

/** Lines that a person should see. `console` fits. */
export interface Logger {
  /** What goes well. */
  info(message: string, facts?: Readonly<Record<string, unknown>>): void;
  /** What somebody should look at in time. */
  warn(message: string, facts?: Readonly<Record<string, unknown>>): void;
  /** What failed. */
  error(message: string, facts?: Readonly<Record<string, unknown>>): void;
}

/** The logger of whoever gives none. */
export const consoleLogger: Logger = {
  info: (message, facts) => console.info(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
  warn: (message, facts) => console.warn(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
  error: (message, facts) => console.error(`payhooks: ${message}`, ...(facts === undefined ? [] : [facts])),
};

/** A store did not answer. The one place where an error of theirs becomes a text. */
export function inboxError(during: string, error: unknown): Happening {
  return { type: "inbox-error", during, error: describeError(error), stack: originOf(error) };
}

/** Notices that may wait for a slow observer; beyond, the newest are dropped and counted. */
const MAX_PENDING = 10_000;

/** Takes notices on the path and hands them on off the path: an observer can neither slow nor break a delivery. */
export class NoticeBoard {
  readonly #lines: LogLines;
  readonly #clock: Clock;
  #observer: ((notice: Notice) => void) | null = null;
  #pending: Notice[] = [];
  #dropped = 0;
  #scheduled = false;

  constructor(lines: LogLines, clock: Clock) {
    this.#lines = lines;
    this.#clock = clock;
  }

  /** Where nobody hears of what goes as it should, such notices need not even be made. */
  get observed(): boolean {
    return this.#observer !== null || this.#lines.tellsEverything;
  }

  observe(observer: (notice: Notice) => void): void {
    this.#observer = observer;
  }

  post(happening: Happening): void {
    if (this.#observer === null && !this.#lines.tells(happening)) return;
    if (this.#pending.length >= MAX_PENDING) {
      this.#dropped++;
      return;
    }
    this.#pending.push({ ...happening, at: this.#clock.now() });
    if (this.#scheduled) return;
    this.#scheduled = true;
    soon(() => this.flush());
  }

  /** Hands on what waits. */
  flush(): void {
    this.#scheduled = false;
    const batch = this.#pending;
    this.#pending = [];
    for (const notice of batch) {
      try {
        this.#observer?.(notice);
      } catch (error) {
        this.#lines.observerThrew(lineOfThrown(error));
      }
      this.#lines.write(notice);
    }
    if (this.#dropped > 0) {
      const dropped = this.#dropped;
      this.#dropped = 0;
      this.#lines.noticesDropped(dropped);
    }
  }

  /** Hands on what waits, the last lines included. */
  close(): void {
    this.flush();
    this.#lines.close();
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
