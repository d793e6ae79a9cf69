import type { Logger } from "../notices/logger.ts";
import type { FlowName, PaymentStatus } from "../protocol/events.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";

/** What a handler is told beside the event. */
export interface HandlerContext {
  /**
   * The same for every run of this handler on this event, and for no other; a replay with `again` has a new one. Stored
   * under a unique index in your own transaction, it makes the effect happen exactly once: `ctx.transaction` does that.
   */
  readonly effectId: string;
  readonly eventId: string;
  /** 1 at the first try of this handler. A try before its time has the number of the next: it counts only if it succeeds. */
  readonly attempt: number;
  /** Aborts when the lease is lost, the handler's time is up, or the receiver closes and its grace is over. */
  readonly signal: AbortSignal;
  readonly receivedAt: Date;
  /** `PENDING`, when that was stored before this terminal status. */
  readonly previousStatus: PaymentStatus | null;
  /** The amount that was stored before, when this event has another one. */
  readonly previousAmount: string | null;
  /** The resolver's tenant; empty with fixed keys. */
  readonly tenant: string;
  /** Fingerprint of the key that verified the event; null when nothing was signed. */
  readonly keyId: string | null;
  readonly log: Logger;
}

/**
 * Returns, or resolves = done, whatever the value is; throws = retry, `throw new RetryAfter(ms)`, `throw new
 * Reject(reason)`.
 */
export type Handler<Event, Context extends HandlerContext = HandlerContext> = (
  event: Event,
  context: Context,
) => unknown;

/** Handlers by status; a status that is left out is not wanted. */
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
  /** Required for every handler of an event but the first, which is named after the event. Stable: part of `effectId`. */
  readonly name?: string | undefined;
  /** A try that takes longer counts as failed, and may still be running. Default 60 s. */
  readonly timeoutMs?: number | undefined;
  /**
   * How often the handler is started at most, crashes included. When the last try fails it is given up, and the event is
   * held as `exhausted`, or `crashed`, once no other handler has tries left. Default 25.
   */
  readonly maxTries?: number | undefined;
  /** Milliseconds to wait after the given try (1 = the first). Default min(1 s · 2ⁿ, 1 h) ± 50 %. */
  readonly backoffMs?: ((attempt: number) => number) | undefined;
  /** What to do when the process died while the handler ran: run it again (default), or hold the event. */
  readonly onCrash?: "rerun" | "hold" | undefined;
}

/** An event that is kept for a person. */
export interface HeldEvent {
  readonly eventId: string;
  readonly flow: FlowName;
  readonly tenant: string;
  readonly id: string;
  /** Empty where the reading is not certain. */
  readonly event: string;
  readonly status: string;
  /** The merchant's reference of a payment; null in the connect flow, and where the reading is not certain. */
  readonly referenceId: string | null;
  readonly reason: HeldReason;
  readonly detail: string | null;
  readonly rawBody: Uint8Array;
}

const RETRY_AFTER = Symbol.for("payhooks.RetryAfter");
const REJECT = Symbol.for("payhooks.Reject");

/** Thrown by a handler: try again after so many milliseconds. It counts as a try. */
export class RetryAfter extends Error {
  readonly ms: number;
  constructor(ms: number, message: string = `to be tried again in ${ms} ms`) {
    super(message);
    this.name = "RetryAfter";
    this.ms = ms;
    Object.defineProperty(this, RETRY_AFTER, { value: ms });
  }
}

/** Thrown by a handler: this event can never be handled. It is held for a person, with the reason. */
export class Reject extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "Reject";
    Object.defineProperty(this, REJECT, { value: true });
  }
}

/** An error of ours that no later try can mend: the event is held, as if a handler had thrown `Reject`. */
export function unrepeatable<E extends Error>(error: E): E {
  return Object.defineProperty(error, REJECT, { value: true });
}

/** The delay that a thrown value asks for, also when it is of another copy of the package. */
export function retryAfterOf(thrown: unknown): number | null {
  const ms: unknown = branded(thrown, RETRY_AFTER);
  return typeof ms === "number" && ms >= 0 ? ms : null;
}

/** Whether a thrown value rejects the event, also when it is of another copy of the package. */
export function isReject(thrown: unknown): boolean {
  return branded(thrown, REJECT) === true;
}

function branded(thrown: unknown, brand: symbol): unknown {
  return typeof thrown === "object" && thrown !== null
    ? (thrown as Record<symbol, unknown>)[brand]
    : undefined;
}

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 3_600_000;

/** min(1 s · 2ⁿ, 1 h) ± 50 %, so that a thousand events that failed together do not come back together. */
export function defaultBackoffMs(attempt: number): number {
  const full = Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_BACKOFF_MS);
  return Math.round(full * (0.5 + Math.random()));
}
