import { PayhooksError } from "./errors.ts";
import { type AnyEvent, EVENT_NAMES, type EventName, type FlowName, type PaymentStatus } from "./events.ts";
import type { HeldReason } from "./inbox/inbox.ts";
import type { Logger } from "./notices.ts";

/** What a handler is told beside the event. */
export interface HandlerContext {
  /**
   * The same for every run of this handler on this event, and for no other. Store it under a unique index in your
   * own transaction, and the effect is exactly once.
   */
  readonly effectId: string;
  readonly eventId: string;
  /** 1 at the first try of this handler. */
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
export type Handler<Event> = (event: Event, context: HandlerContext) => unknown;

/** Handlers by status; a status that is left out is not wanted. */
export type HandlersByStatus<Event extends { readonly status: PaymentStatus }> = {
  readonly [Status in PaymentStatus]?: Handler<Extract<Event, { readonly status: Status }>> | undefined;
};

/** A function runs on SUCCESS only, so that nobody credits a failed deposit by accident. */
export type PaymentHandlers<Event extends { readonly status: PaymentStatus }> =
  | Handler<Extract<Event, { readonly status: "SUCCESS" }>>
  | HandlersByStatus<Event>;

/** Options of one handler. */
export interface HandlerOptions {
  /** Required for every handler of an event but the first, which is named after the event. Stable: part of `effectId`. */
  readonly name?: string | undefined;
  /** A try that takes longer counts as failed, and may still be running. Default 60 s. */
  readonly timeoutMs?: number | undefined;
  /** Then the event is held as `exhausted`, or `crashed`. Default 25. */
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
  readonly reason: HeldReason;
  readonly detail: string | null;
  readonly rawBody: Uint8Array;
}

/** A handler as it is run. */
export interface Registered {
  readonly name: string;
  readonly timeoutMs: number;
  readonly maxTries: number;
  readonly backoffMs: (attempt: number) => number;
  readonly onCrash: "rerun" | "hold";
}

/** A handler of events. */
export interface RegisteredHandler extends Registered {
  /** The function for this event, or null when its status is not wanted. */
  readonly pick: (event: AnyEvent) => Handler<AnyEvent> | null;
}

/** A handler of held entries. */
export interface RegisteredHeldHandler extends Registered {
  readonly handle: Handler<HeldEvent>;
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

const HANDLER_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** `connected_account.approved` → `connectedAccountApproved`: the first handler of an event is named after it. */
function defaultHandlerName(event: EventName): string {
  return event.toLowerCase().replace(/[._]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** All handlers of a receiver. Registration closes at the start, or at the first delivery. */
export class Registry {
  readonly #handlers = new Map<EventName, RegisteredHandler[]>();
  readonly #held: RegisteredHeldHandler[] = [];
  readonly #ignored = new Set<string>();
  #closed = false;

  add(event: EventName, pick: RegisteredHandler["pick"], options: HandlerOptions): void {
    if (this.#ignored.has(event)) throw contradiction(event);
    const list = this.#handlers.get(event) ?? [];
    list.push({ ...this.#check(list, event, defaultHandlerName(event), options), pick });
    this.#handlers.set(event, list);
  }

  addHeld(handle: Handler<HeldEvent>, options: HandlerOptions): void {
    this.#held.push({ ...this.#check(this.#held, "held entries", "held", options), handle });
  }

  ignore(event: EventName): void {
    this.#checkOpen();
    if (this.#handlers.has(event)) throw contradiction(event);
    this.#ignored.add(event);
  }

  close(): void {
    this.#closed = true;
  }

  handlersOf(event: EventName): readonly RegisteredHandler[] {
    return this.#handlers.get(event) ?? [];
  }

  get heldHandlers(): readonly RegisteredHeldHandler[] {
    return this.#held;
  }

  isIgnored(event: EventName): boolean {
    return this.#ignored.has(event);
  }

  get empty(): boolean {
    return this.#handlers.size === 0;
  }

  /** Names of a flow that have no handler and are not ignored. */
  unhandled(flow: FlowName): readonly EventName[] {
    return EVENT_NAMES[flow].filter((event) => !this.#handlers.has(event) && !this.#ignored.has(event));
  }

  #checkOpen(): void {
    if (!this.#closed) return;
    throw new PayhooksError(
      "ERR_REGISTRATION_CLOSED",
      "The receiver has started: handlers can no longer be registered.",
      {
        fix: "Register every handler right after createReceiver, before the server listens.",
      },
    );
  }

  #check(
    others: readonly Registered[],
    of: string,
    defaultName: string,
    options: HandlerOptions,
  ): Registered {
    this.#checkOpen();
    const { name = others.length === 0 ? defaultName : undefined } = options;
    if (name === undefined || typeof name !== "string" || !HANDLER_NAME.test(name)) {
      throw new PayhooksError(
        "ERR_HANDLER_NAME",
        name === undefined
          ? `A further handler of ${of} has no name.`
          : `A handler of ${of} has the name ${JSON.stringify(name)}.`,
        {
          fix: 'Give { name } as letters, digits, "_", "." or "-", and keep it: it is part of effectId.',
        },
      );
    }
    if (others.some((other) => other.name === name)) {
      throw new PayhooksError("ERR_HANDLER_DUPLICATE", `${of} has a handler named "${name}" already.`, {
        fix: "Give each handler of an event its own { name }; was this module loaded twice?",
      });
    }
    const { timeoutMs = 60_000, maxTries = 25, backoffMs = defaultBackoffMs, onCrash = "rerun" } = options;
    checkPositive("timeoutMs", timeoutMs);
    checkPositive("maxTries", maxTries);
    return { name, timeoutMs, maxTries, backoffMs, onCrash };
  }
}

function contradiction(event: EventName): PayhooksError {
  return new PayhooksError("ERR_OPTION_INVALID", `${event} has a handler and is ignored.`, {
    fix: "Remove one of the two: an ignored event runs no handler.",
  });
}

/** Throws unless an option is a number above zero. */
export function checkPositive(option: string, value: number): void {
  if (typeof value === "number" && value > 0) return;
  throw new PayhooksError("ERR_OPTION_INVALID", `${option} is ${String(value)}, not a number above zero.`, {
    fix: "Leave it out for the default.",
  });
}
