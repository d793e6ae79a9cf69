import type { ErrorCode } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import { describeError, originOf } from "../protocol/foreign-error.ts";
import type { GiveUpReason, HeldReason } from "../protocol/held-reasons.ts";

/** The facts of one event in a notice. It never has a body, a key or a signature. */
export interface EventFacts {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly eventId: string;
  /** `payTxnId`, `idempotency_key` or the id that a source gives. For a body without a certain reading, a hash of it. */
  readonly id: string;
  readonly event: string;
  /** The status of a payment, or the stage of a source; otherwise empty. */
  readonly status: string;
  /**
   * The merchant's reference of a payment, the account or the settlement of a connect event, or what the `read` of a
   * source names. Null if there is none, and if the reading is not certain.
   */
  readonly referenceId: string | null;
}

interface AboutEvent<Type extends string> extends EventFacts {
  readonly type: Type;
}

interface AboutHandler<Type extends string> extends AboutEvent<Type> {
  readonly handler: string;
  readonly attempt: number;
}

/** The error of a handler. Only `error` is stored with the event. */
interface ThrownByHandler {
  /** The error in one line of at most 500 characters. */
  readonly error: string;
  /** The stack and those of its causes, at most 4,000 characters; null if there is none, and for a `RetryAfter`. */
  readonly stack: string | null;
}

/** Everything that happens, for logs, metrics and traces. `type` discriminates. */
export type Notice = UndatedNotice & {
  /** When it happened, in milliseconds since the epoch on the receiver's clock. */
  readonly at: number;
};

/** A notice before the receiver has added its time. */
export type UndatedNotice =
  /** The event is new, or follows a PENDING. It is stored and will run. */
  | (AboutEvent<"accepted"> & { readonly keyId: string | null; readonly previousAmount: string | null })
  /** A copy of a stored event. It is acknowledged, and not run again. */
  | AboutEvent<"duplicate">
  /**
   * An event that a later one has overtaken: a PENDING after the final status, an earlier stage of a source, or an earlier
   * event of a subject. It is acknowledged, and not run.
   */
  | AboutEvent<"stale">
  /** The event is kept for a person. */
  | (AboutEvent<"held"> & { readonly reason: HeldReason; readonly detail: string | null })
  /** A person made an event run again, or discarded a held one. */
  | {
      readonly type: "replayed" | "discarded";
      readonly eventId: string;
      readonly by: string;
      readonly note: string;
    }
  /**
   * A person erased events, at most 50 of them; a larger erasure has several of these notices. `eventIds` are digests,
   * by which the events are still found. `name` is that of the erasure's report.
   */
  | {
      readonly type: "erased";
      readonly by: string;
      readonly name: string;
      readonly count: number;
      readonly eventIds: readonly string[];
    }
  /** A delivery was not accepted. `code` is that of the answer. `why` says more than the sender gets to know. */
  | {
      readonly type: "refused";
      readonly flow: FlowName;
      readonly code: ErrorCode;
      readonly httpStatus: number;
      readonly why: string;
      /** The sender's address as the adapter knows it, at most 64 characters; null if it is not known. */
      readonly address: string | null;
      /**
       * The likely cause, and what to do: with the first bad signature of an address within the alerts' window, and with an
       * authentic delivery that raised an alert for its time.
       */
      readonly fix: string | null;
      /** The stack of the error behind the refusal, without its message; null if there was none. */
      readonly stack: string | null;
    }
  /**
   * An event of a source has no handler. It was acknowledged, and not stored. `count`: how many of this name so far, in
   * this process.
   */
  | {
      readonly type: "unhandled";
      readonly flow: FlowName;
      readonly event: string;
      readonly count: number;
    }
  /** The event is known with another amount: in another status, or arrived in another way. */
  | (AboutEvent<"amount-changed"> & { readonly previousAmount: string; readonly amount: string })
  | AboutHandler<"started">
  | (AboutHandler<"done"> & { readonly durationMs: number })
  | (AboutHandler<"retry"> & { readonly delayMs: number } & ThrownByHandler)
  /** A handler will not be tried again. The event is held once no other handler has attempts left. */
  | (AboutHandler<"given-up"> & { readonly reason: GiveUpReason } & ThrownByHandler)
  /** All handlers that wanted the event are done. */
  | AboutEvent<"finished">
  /** A handler may run, or may have run, a second time, in one of the three documented cases. */
  | (AboutEvent<"double-risk"> & {
      readonly why:
        | "lease-lost"
        | "timeout"
        | "died-while-running"
        | "closed-while-running"
        /** A replay with `evenIfExpired`: the record of an earlier run may have expired. */
        | "replayed-after-expiry";
    })
  /**
   * A handler reached an effect that an earlier run has committed, and skipped it. `effect` is its id. `unexpected`:
   * the inbox knows of no earlier run. Either it has lost its records, or another receiver uses the same table and
   * `scope`, or a person has written the id.
   */
  | (AboutHandler<"effect-skipped"> & { readonly effect: string; readonly unexpected: boolean })
  /** A program asked to run an event of which the inbox has no record. */
  | { readonly type: "record-missing"; readonly eventId: string }
  /** The inbox's store did not answer, or refused. The call is repeated. */
  | {
      readonly type: "inbox-error";
      readonly during: InboxCall;
      /** How many equal errors this notice stands for. The first one is reported at once, and later ones every ten seconds. */
      readonly count: number;
      /** The kind and the codes of the error. A store's own words may contain data, so only known texts are repeated. */
      readonly error: string;
      /** The stack, without the error's message; null if this is not known. */
      readonly stack: string | null;
    }
  /** An operation that events need has failed for five seconds, and still fails. Sent once. */
  | {
      readonly type: "stalled";
      readonly during: StallKind;
      /** The kind and the codes of the last error, as in `inbox-error`. */
      readonly error: string;
      /** The stack, without the error's message; null if this is not known. */
      readonly stack: string | null;
    }
  /** A stalled operation works again. */
  | { readonly type: "recovered"; readonly during: StallKind; readonly afterMs: number }
  /**
   * The answer of `receiver.ready()` has changed. `code` may be shown to strangers. `detail` says more, and is for the log only.
   */
  | {
      readonly type: "readiness";
      readonly ok: boolean;
      readonly code: NotReadyCode | null;
      readonly detail: string | null;
    }
  /**
   * Events that were stored and acknowledged are lost, or may be. `replaced`: the store has other data, because the
   * data was emptied, deleted or exchanged. `missing`: the data is the same, but lacks records that were stored.
   * `log-removed`: the write-ahead log of a SQLite file was removed or damaged. `evicting`: the store is configured to
   * drop records when it is full.
   */
  | { readonly type: "data-lost"; readonly why: Loss }
  /** The memory inbox was too small for the window: records of events signed before this time are gone. */
  | { readonly type: "window-shrunk"; readonly signedBefore: number }
  /** Repeated verification failures: a security signal (specification, Events). */
  | Alert
  /** The keys of `option` were read again, and have changed. `keyIds` are their fingerprints. */
  | { readonly type: "keys-changed"; readonly option: string; readonly keyIds: readonly string[] }
  /** The keys of `option` could not be read again. The last keys stay in use until they can be. */
  | {
      readonly type: "keys-unreadable";
      readonly option: string;
      /** `ERR_KEY_UNREADABLE` if `read` failed or was too slow, else the code for which its result is refused. */
      readonly code: ErrorCode;
      readonly error: string;
    }
  /** A setting that works but should not stay. */
  | { readonly type: "warning"; readonly what: string; readonly fix: string };

/** Repeated failures within the rolling window. */
export interface Alert {
  readonly type: "alert";
  /**
   * `all-failing`: no delivery of this flow, from any address, was authentic since the first of these failures. Probably the key
   * is wrong or was rotated. `probing`: other deliveries succeed in between. Probably it is an attack. `held-full` and
   * `refused`: authentic deliveries were not stored; see `docs/operating/operations.md`.
   */
  readonly kind: "all-failing" | "probing" | "held-full" | "refused";
  readonly flow: FlowName;
  /** The code of the failures. */
  readonly code: ErrorCode;
  /**
   * The address that the failures come from. Null if it is not known or does not matter, or if there are too many to name each.
   */
  readonly address: string | null;
  readonly failures: number;
  /** How many addresses had failures in the window. */
  readonly addresses: number;
  readonly windowMs: number;
}

/**
 * The call of a receiver that the store of its inbox did not answer, or refused. `docs/reference/notices.md` explains
 * each. `notifyWorker` is the option of this name, which calls no store.
 */
export type InboxCall =
  | "start"
  | "handlers"
  | "listen"
  | "take"
  | "begin"
  | "run"
  | "step"
  | "claim"
  | "renew"
  | "finish"
  | "subject"
  | "release"
  | "work"
  | "notifyWorker"
  | "prune"
  | "pruneEffects";

/** The notice about a store that did not answer. The error of a store becomes a text only here. */
export function inboxErrorNotice(during: InboxCall, error: unknown): UndatedNotice {
  return { type: "inbox-error", during, count: 1, error: describeError(error), stack: originOf(error) };
}

/**
 * The operations that can stall. `start`: the receiver should run, and could not start. `accept`: deliveries cannot be
 * stored. `take`: events that are due cannot be begun. `end`: the end of a run cannot be written.
 */
export type StallKind = "start" | "accept" | "take" | "end";

/** Why deliveries should not be sent to a process: the codes of `GET /ready`. `docs/operating/load-balancer.md` explains each. */
export type NotReadyCode =
  | "closing"
  | "no-receiver"
  | "misconfigured"
  | "not-started"
  | "inbox-unavailable"
  | "stalled"
  | "not-counted"
  | "overdue";

export function stalledNotice(during: StallKind, cause: unknown): UndatedNotice {
  return { type: "stalled", during, error: describeError(cause), stack: originOf(cause) };
}

export function recoveredNotice(during: StallKind, afterMs: number): UndatedNotice {
  return { type: "recovered", during, afterMs: Math.round(afterMs) };
}

/**
 * How stored events are lost, or may be. `replaced`: the store has other data, because the data was emptied, deleted or
 * exchanged. `missing`: records that were stored are gone, or are no longer in the lists by which they are found.
 * `log-removed`: the write-ahead log of a SQLite file was removed or damaged while the file was open. `evicting`: the
 * store is configured to drop records when it is full.
 */
export type Loss = "replaced" | "missing" | "log-removed" | "evicting";
