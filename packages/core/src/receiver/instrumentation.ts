import type { Health } from "../inbox/contract/inbox.ts";
import type { AcceptOutcome } from "../inbox/record/event.ts";
import { MAX_TRACE_CHARS } from "../inbox/record/record.ts";
import type { EventFacts, UndatedNotice } from "../notices/notice.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import { isThenable } from "../time/awaitable.ts";

/**
 * Measures or traces a receiver: `otel()` of `@payhooks/core/otel`, or `prometheusMetrics()` of
 * `@payhooks/core/metrics`. Its functions are called for every delivery and for every call of a handler, so they must
 * be fast. If a function throws, or rejects, the receiver continues as if there were no instrumentation.
 */
export interface Instrumentation {
  /** Called once, by `createReceiver`. */
  attach(receiver: ObservedReceiver): void;
  /** A notice was posted. Called at once. Without an observer, the receiver makes no notices about successes. */
  onNotice(notice: UndatedNotice): void;
  /** A delivery has arrived. Called in the context of its request. Null: it is not observed. */
  observeDelivery(delivery: DeliveryFacts): Observation<DeliveryEnd> | null;
  /** A handler is about to be called. Called in the context in which the handler is called. Null: it is not observed. */
  observeHandler(call: HandlerFacts): Observation<HandlerEnd> | null;
  /** A run has put its event on hold, or has found that a later event of the same subject has overtaken it. */
  onEventEnd(event: EndedFacts): void;
}

/** The questions that an instrumentation may ask of its receiver. */
export interface ObservedReceiver {
  health(): Promise<Health>;
}

/** Something that is being measured. */
export interface Observation<End> {
  /**
   * A short text without personal data that is kept with the event, at most 100 characters. Later calls of handlers get
   * it, in this process or another. Null: nothing. Only that of a delivery is kept.
   */
  readonly trace: string | null;
  /**
   * Calls the function with this observation active, and returns its result. The receiver calls the function once, and uses the
   * function's own result, whatever this method returns or throws.
   */
  run<T>(call: () => T): T;
  /** The observed work has ended. Called once. */
  end(end: End): void;
}

/** A delivery that has arrived. */
export interface DeliveryFacts {
  readonly flow: FlowName;
  /** A header field of the request, by its lowercase name. */
  header(name: string): string | null;
}

/**
 * The result of a delivery. `refused`: it was answered with an error. `answered`: a source has answered it without an event, such
 * as a challenge. `unwanted`: its event has no handler, and is not stored. The other results are those of the table of
 * deduplication.
 */
export type DeliveryOutcome = AcceptOutcome | "refused" | "answered" | "unwanted";

/** The end of a delivery: its answer. */
export interface DeliveryEnd {
  readonly outcome: DeliveryOutcome;
  readonly status: number;
  /** The code of the answer, if it was refused. */
  readonly code: string | null;
  /** Null if nothing was stored. */
  readonly eventId: string | null;
  /** Why the event is held; null if it is not. */
  readonly reason: HeldReason | null;
}

/** A call of a handler. */
export interface HandlerFacts extends EventFacts {
  /** The handler's name. That of an onHeld handler begins with `held:`. */
  readonly handler: string;
  /** Counted from 1; anew after a replay. */
  readonly attempt: number;
  /** How often the event was replayed. */
  readonly replays: number;
  /** The trace that was kept with the event when it was accepted; null if there was none. */
  readonly trace: string | null;
}

/** How a call of a handler ended. */
export interface HandlerEnd {
  readonly outcome: "done" | "retry" | "given-up";
  /** The error that it threw; undefined if it is done. */
  readonly error: unknown;
}

/** An event that a run has put on hold, or that a later event of its subject has overtaken. */
export interface EndedFacts extends EventFacts {
  readonly outcome: "held" | "stale";
  /** Null if it is stale. */
  readonly reason: HeldReason | null;
  readonly replays: number;
  readonly trace: string | null;
}

/**
 * Wraps an instrumentation, so that its errors reach neither a delivery nor a handler. `onError` is called with them.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` if a function is missing.
 */
export function guardInstrumentation(
  instrumentation: Instrumentation,
  onError: (error: unknown) => void,
): Instrumentation {
  const names = ["attach", "onNotice", "observeDelivery", "observeHandler", "onEventEnd"] as const;
  const missingNames = names.filter((name) => typeof instrumentation?.[name] !== "function");
  if (missingNames.length > 0) {
    throw new PayhooksError("ERR_OPTION_INVALID", `instrumentation has no ${missingNames.join(", no ")}.`, {
      fix: "Give it otel() of @payhooks/core/otel, or prometheusMetrics() of @payhooks/core/metrics.",
    });
  }
  const observe = <End>(call: () => Observation<End> | null): Observation<End> | null =>
    callSafely(
      () => {
        const observation = call();
        if (observation === null) return null;
        if (!isThenable(observation)) return new GuardedObservation(observation, onError);
        // The delivery or the call begins now, so a promise of an observation would come too late.
        observation.then(
          () => onError(new TypeError("observeDelivery and observeHandler must not return a promise.")),
          onError,
        );
        return null;
      },
      null,
      onError,
    );
  const notify = (call: () => void): void => void callSafely(call, undefined, onError);
  return {
    attach: (receiver) => notify(() => instrumentation.attach(receiver)),
    onNotice: (notice) => notify(() => instrumentation.onNotice(notice)),
    observeDelivery: (facts) => observe(() => instrumentation.observeDelivery(facts)),
    observeHandler: (facts) => observe(() => instrumentation.observeHandler(facts)),
    onEventEnd: (facts) => notify(() => instrumentation.onEventEnd(facts)),
  };
}

/**
 * Makes a call, and passes its error to `onError`. If the function is async, this does not wait for it, but still passes on its
 * rejection.
 */
function callSafely<T>(call: () => T, fallback: T, onError: (error: unknown) => void): T {
  try {
    const result = call();
    if (isThenable(result)) result.then(undefined, onError);
    return result;
  } catch (error) {
    onError(error);
    return fallback;
  }
}

class GuardedObservation<End> implements Observation<End> {
  readonly trace: string | null;
  readonly #observation: Observation<End>;
  readonly #onError: (error: unknown) => void;

  constructor(observation: Observation<End>, onError: (error: unknown) => void) {
    this.#observation = observation;
    this.#onError = onError;
    const { trace } = observation;
    this.trace = typeof trace === "string" && trace.length <= MAX_TRACE_CHARS ? trace : null;
  }

  run<T>(call: () => T): T {
    const singleCall = new SingleCall(call);
    callSafely<unknown>(
      () => this.#observation.run(() => singleCall.result()),
      undefined,
      (error) => {
        if (!singleCall.hasFailedWith(error)) this.#onError(error);
      },
    );
    return singleCall.result();
  }

  end(end: End): void {
    callSafely(() => this.#observation.end(end), undefined, this.#onError);
  }
}

/** A call that is made once, even if its result is used several times. */
class SingleCall<T> {
  readonly #call: () => T;
  #success: { readonly value: T } | null = null;
  #failure: { readonly error: unknown } | null = null;

  constructor(call: () => T) {
    this.#call = call;
  }

  /** Returns what the call has returned, or throws what it has thrown. */
  result(): T {
    if (this.#success === null && this.#failure === null) this.#makeCall();
    if (this.#success === null) throw this.#failure?.error;
    return this.#success.value;
  }

  /** True if the call has thrown this error, or its promise has rejected with it. */
  hasFailedWith(error: unknown): boolean {
    return this.#failure !== null && this.#failure.error === error;
  }

  #makeCall(): void {
    try {
      const value = this.#call();
      if (!isThenable(value)) {
        this.#success = { value };
        return;
      }
      // Some thenables, such as queries, begin anew each time that they are awaited. A promise of one begins once.
      const promise = Promise.resolve(value);
      this.#success = { value: promise as T };
      promise.catch((error: unknown) => {
        this.#failure = { error };
      });
    } catch (error) {
      this.#failure = { error };
    }
  }
}
