import type { ErrorCode } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import { describeError, originOf } from "../protocol/foreign-error.ts";
import type { GivenUp, HeldReason } from "../protocol/held-reasons.ts";

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
  /** A handler came to an effect that an earlier run has committed, and left it out. `effect` is its id. */
  | (AboutHandler<"effect-skipped"> & { readonly effect: string })
  /** Somebody asked for an event to be run of which there is no record. */
  | { readonly type: "record-missing"; readonly eventId: string }
  /** The inbox's store did not answer, or refused; the call is repeated. */
  | {
      readonly type: "inbox-error";
      readonly during: string;
      /** How many equal ones this stands for: the first is told at once, what follows every ten seconds. */
      readonly count: number;
      /** Kind and codes; of a store's own words, which may hold what it was given, only known ones. */
      readonly error: string;
      /** Where it was thrown, without its message; null where nothing says so. */
      readonly stack: string | null;
    }
  /**
   * Events that were stored and acknowledged are lost, or may be. `replaced`: the store does not have the data that it had: it
   * was emptied, deleted, or exchanged. `evicting`: it has been told to drop records when it is full.
   */
  | { readonly type: "data-lost"; readonly why: Loss }
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
   * `docs/operating/operations.md`.
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

/** A store did not answer. The one place where an error of theirs becomes a text. */
export function inboxError(during: string, error: unknown): Happening {
  return { type: "inbox-error", during, count: 1, error: describeError(error), stack: originOf(error) };
}

/**
 * How events that were stored are lost, or may be. `replaced`: the data is not what it was before: it was emptied, deleted, or
 * exchanged for other data. `evicting`: the store has been told to drop records when it is full.
 */
export type Loss = "replaced" | "evicting";
