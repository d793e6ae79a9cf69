import type { Logger } from "../notices/logger.ts";
import type { EventFacts } from "../notices/notice.ts";
import type { Contents } from "../protocol/contents.ts";
import type { PaymentStatus } from "../protocol/events.ts";
import { propertyOf } from "../protocol/foreign-value.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import { jitterOf } from "../time/jitter.ts";

/** The handler's second argument, beside the event. */
export interface HandlerContext {
  /**
   * Every run of this handler on this event has this id. No other handler or event has it. A replay with
   * `repeatEffects` gets a new id. If you store it under a unique index in your own transaction, the effect happens
   * exactly once. `ctx.transaction` does this for you.
   */
  readonly effectId: string;
  readonly eventId: string;
  /**
   * 1 at the first attempt of this handler. An attempt before its time has the number of the next attempt. If it
   * fails, it does not count, and the next attempt has this number again.
   */
  readonly attempt: number;
  /** Aborts when the lease is lost, when the handler's time is up, or when the receiver closes and its grace period is over. */
  readonly signal: AbortSignal;
  readonly receivedAt: Date;
  /** The status that was stored before this one, such as `PENDING`; null if there was none. */
  readonly previousStatus: string | null;
  /** The amount that was stored before, if this event has a different amount. */
  readonly previousAmount: string | null;
  /** The resolver's tenant; empty with fixed keys. */
  readonly tenant: string;
  /** The fingerprint of the key that verified the event; null if it was not signed. */
  readonly keyId: string | null;
  readonly log: Logger;
}

/**
 * A function that handles an event. If it returns or resolves, with any value, it is done. If it throws or rejects, it is tried
 * again: after the backoff, or after `ms` with `throw new RetryAfter(ms)`. With `throw new Reject(reason)` it is not tried
 * again.
 */
export type Handler<Event, Context extends HandlerContext = HandlerContext> = (
  event: Event,
  context: Context,
) => unknown;

/** Handlers by status. An event with another status is acknowledged, and counts as done. */
export type HandlersByStatus<
  Event extends { readonly status: PaymentStatus },
  Context extends HandlerContext = HandlerContext,
> = {
  readonly [Status in PaymentStatus]?:
    | Handler<Extract<Event, { readonly status: Status }>, Context>
    | undefined;
};

/** A function runs on SUCCESS only, so that nobody credits a failed deposit by accident. */
export type PaymentHandlers<
  Event extends { readonly status: PaymentStatus },
  Context extends HandlerContext = HandlerContext,
> = Handler<Extract<Event, { readonly status: "SUCCESS" }>, Context> | HandlersByStatus<Event, Context>;

/** Options of one handler. */
export interface HandlerOptions {
  /**
   * Required for every handler of an event except the first, which is named after the event. It is part of `effectId`, so do
   * not change it.
   */
  readonly name?: string | undefined;
  /** An attempt that takes longer counts as failed, and may still be running: see `onTimeout`. Default 60 s. */
  readonly timeoutMs?: number | undefined;
  /**
   * How often the handler is started at most, crashes included. If the last attempt fails, the handler is given up. The event is
   * held as `exhausted`, or `crashed`, once no other handler has attempts left. Default 25.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Milliseconds to wait after the given attempt (1 = the first). Default 1 s after the first, and twice as long after
   * each, up to 1 h; ± 50 %.
   */
  readonly backoffMs?: ((attempt: number) => number) | undefined;
  /** If the process died while the handler ran, run the handler again (default), or hold the event. */
  readonly onCrash?: "rerun" | "hold" | undefined;
  /**
   * If a further attempt is due while an earlier call still runs in this process, past its `timeoutMs`, let the attempt fail
   * without a call (default), or call the handler all the same.
   */
  readonly onTimeout?: "wait" | "rerun" | undefined;
  /**
   * How many calls of this handler may be open in this process at one time. Default: no limit of its own.
   * Events that wait for a call leave their places to others. A call that is past its `timeoutMs` counts until it ends, unless
   * `onTimeout` is `"rerun"`.
   */
  readonly concurrency?: number | undefined;
}

/** An event that is kept for a person. */
export interface HeldEvent extends EventFacts {
  readonly reason: HeldReason;
  readonly detail: string | null;
  /** The event's fields as its handlers get them, and the signed text. */
  readonly contents: Contents;
}

const RETRY_AFTER_BRAND = Symbol.for("payhooks.RetryAfter");
const REJECT_BRAND = Symbol.for("payhooks.Reject");
const UNCOUNTED_BRAND = Symbol.for("payhooks.Uncounted");

/**
 * Thrown by a handler to be tried again after `ms` milliseconds; if that is not a finite number, after its backoff. It
 * counts as an attempt.
 */
export class RetryAfter extends Error {
  readonly ms: number;
  constructor(ms: number, message: string = `to be tried again in ${ms} ms`) {
    super(message);
    this.name = "RetryAfter";
    this.ms = ms;
    Object.defineProperty(this, RETRY_AFTER_BRAND, { value: ms });
  }
}

/** Thrown by a handler for an event that can never be handled. The event is held for a person, with the reason. */
export class Reject extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "Reject";
    Object.defineProperty(this, REJECT_BRAND, { value: true });
  }
}

/** Marks an error of Payhooks that no later attempt can correct. The event is held, as if a handler had thrown `Reject`. */
export function markUnrepeatable<E extends Error>(error: E): E {
  return Object.defineProperty(error, REJECT_BRAND, { value: true });
}

/**
 * Marks an error of Payhooks that is not the fault of the handler, and after which nothing was changed. The call does not
 * count as an attempt.
 */
export function markUncounted<E extends Error>(error: E): E {
  return Object.defineProperty(error, UNCOUNTED_BRAND, { value: true });
}

/** True if a call that threw this does not count as an attempt, even if it comes from another copy of the package. */
export function isUncounted(thrown: unknown): boolean {
  return brandValueOf(thrown, UNCOUNTED_BRAND) === true;
}

/** The delay that a thrown value asks for, even if it comes from another copy of the package. */
export function retryAfterOf(thrown: unknown): number | null {
  return delayOf(brandValueOf(thrown, RETRY_AFTER_BRAND));
}

/** The delay that a handler or its `backoffMs` gave, ten years at most; null if it is negative or no finite number. */
export function delayOf(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value < Number.POSITIVE_INFINITY
    ? Math.min(value, MAX_DELAY_MS)
    : null;
}

/** True if a thrown value rejects the event, even if it comes from another copy of the package. */
export function isReject(thrown: unknown): boolean {
  return brandValueOf(thrown, REJECT_BRAND) === true;
}

function brandValueOf(thrown: unknown, brand: symbol): unknown {
  return propertyOf(thrown, brand);
}

/** No delay is longer than ten years. Every store can keep such a time. */
const MAX_DELAY_MS = 10 * 366 * 24 * 60 * 60 * 1000;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 3_600_000;

/**
 * 1 s after the first attempt, twice as long after each further one, up to 1 h; ± 50 %, so that many events that failed
 * together are not tried again together. The environment's `token` decides within that range.
 */
export function defaultBackoffMs(attempt: number, token: string): number {
  const full = Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_BACKOFF_MS);
  return Math.round(full * jitterOf(token));
}

const MAX_UNCOUNTED_BACKOFF_MS = 30_000;

/** After a call that does not count: 1 s, then twice as long as the last delay, up to 30 s; ± 50 %, as `token` decides. */
export function uncountedBackoffMs(lastMs: number, token: string): number {
  const full = Math.min(Math.max(FIRST_BACKOFF_MS, lastMs * 2), MAX_UNCOUNTED_BACKOFF_MS);
  return Math.round(full * jitterOf(token));
}
