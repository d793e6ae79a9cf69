import type { AuthenticReading, ChallengeAnswer, Flow, ReadDelivery, Verification } from "../flows/flow.ts";
import { resolverError } from "../flows/keyring.ts";
import type { Inbox, Runner } from "../inbox/contract/inbox.ts";
import type { AcceptResult, VerifiedEvent } from "../inbox/record/event.ts";
import { inboxErrorNotice } from "../notices/notice.ts";
import type { NoticeBoard } from "../notices/notice-board.ts";
import {
  closingReply,
  type Delivery,
  findHeadFault,
  RECEIVED_REPLY,
  type Reply,
} from "../protocol/delivery.ts";
import { ANSWER_STATUS, type DeliveryErrorCode, isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import type { FlowName } from "../protocol/events.ts";
import { describeError, originOf } from "../protocol/foreign-error.ts";
import { currentContext } from "../time/async-context.ts";
import { isThenable } from "../time/awaitable.ts";
import { sleep } from "../time/clock.ts";
import { callWithDeadline, Deadline, TIME_IS_UP } from "../time/deadline.ts";
import { type Environment, ON_WORKERS } from "../time/environment.ts";
import { type DeliveryProgress, deliveryEndOf, newDeliveryProgress } from "./delivery-progress.ts";
import type { Endpoint, ReceiveOptions } from "./endpoint.ts";
import { EventLoopBudget } from "./event-loop-budget.ts";
import type { Instrumentation } from "./instrumentation.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { markHandled } from "./mark-handled.ts";
import type { Settings } from "./options.ts";
import type { Fault, Outcomes } from "./outcomes.ts";
import { UnhandledNames } from "./unhandled-names.ts";

export interface IntakeDependencies {
  readonly settings: Settings;
  readonly environment: Environment;
  readonly notices: NoticeBoard;
  readonly outcomes: Outcomes;
  readonly inbox: Inbox;
  readonly runner: Runner;
  readonly lifecycle: Lifecycle;
  /** Null: the receiver is not measured, so no observations are made. */
  readonly instrumentation: Instrumentation | null;
  /** Runs the events that are due. */
  work(): Promise<unknown>;
  /** The treatment of this process's handlers for an event of a source. `unknown`: it has no handlers of the source at all. */
  treatmentOf(flow: FlowName, event: string): "handled" | "ignored" | "none" | "unknown";
}

/** For how long only the request that accepted an event may run it, after its response. Then any process may. */
const RESERVED_FOR_REQUEST_MS = 5_000;

type RefuseDelivery = (...fault: Fault) => Reply;
type Obstacle = readonly [code: DeliveryErrorCode, why: string];

/** Takes a delivery from its bytes to its answer: verify, accept, acknowledge. All flows of a receiver share one. */
export class Intake {
  readonly #dependencies: IntakeDependencies;
  /** Null on Workers, where a promise of one request cannot be fulfilled by another. */
  readonly #eventLoopBudget: EventLoopBudget | null;
  #inFlight = 0;
  /** How long verification and acceptance of the latest accepted delivery took. */
  #lastAcceptMs = 0;
  /** Deliveries without an answer yet, including those that wait for a resolver or for their handlers. */
  #unanswered = 0;
  #drainWaiters: (() => void)[] = [];
  readonly #unhandled: UnhandledNames;

  constructor(dependencies: IntakeDependencies) {
    this.#dependencies = dependencies;
    this.#unhandled = new UnhandledNames(dependencies.notices);
    this.#eventLoopBudget = ON_WORKERS ? null : new EventLoopBudget(dependencies.environment);
  }

  /** One flow, as adapters mount it. */
  endpoint(flow: Flow): Endpoint {
    const { bodyTimeoutMs, ack, run } = this.#dependencies.settings;
    const maxBodyBytes = this.#maxBodyBytesOf(flow);
    const refuse = (code: DeliveryErrorCode, why: string, remoteAddress?: string): Reply =>
      this.#answerUnread(
        flow,
        this.#dependencies.outcomes.refuse(flow, remoteAddress, false, [code, why]),
        code,
      );
    return {
      flow: flow.name,
      maxBodyBytes,
      bodyTimeoutMs,
      ack,
      run,
      check: (head, remoteAddress) => {
        const challengeReply =
          head.method === "GET" ? (flow.source?.challenge(head.url ?? "") ?? null) : null;
        if (challengeReply !== null) return this.#answerUnread(flow, challengeReply, null);
        const fault = findHeadFault(head, maxBodyBytes, flow.source !== undefined);
        if (fault !== null) return refuse(fault, "the request's head", remoteAddress);
        const reason = this.#findObstacle();
        return reason === null ? null : refuse(...reason, remoteAddress);
      },
      receive: (delivery, options = {}) => this.#answer(flow, delivery, options),
      refuse,
      markHandled: (event, options = {}) => markHandled(this.#dependencies, flow, event, options),
    };
  }

  #maxBodyBytesOf({ source }: Flow): number {
    return source?.maxBodyBytes ?? this.#dependencies.settings.maxBodyBytes;
  }

  /** Resolves once every delivery has its answer and the adapter could send it, or when the time is over. */
  async drain(waitMs: number): Promise<void> {
    const { environment } = this.#dependencies;
    if (this.#unanswered > 0 && waitMs > 0) {
      const allAnswered = new Promise<void>((resolve) => this.#drainWaiters.push(resolve));
      await Promise.race([allAnswered, sleep(environment, waitMs)]);
    }
    await new Promise<void>((resolve) => environment.nextTurn(resolve));
  }

  async #answer(flow: Flow, delivery: Delivery, options: ReceiveOptions): Promise<Reply> {
    this.#unanswered++;
    const { instrumentation } = this.#dependencies;
    try {
      const receiving =
        instrumentation === null
          ? this.#receiveAndReport(flow, delivery, options)
          : this.#receiveObserved(instrumentation, flow, delivery, options);
      return this.#closeConnectionIfClosing(await receiving);
    } finally {
      this.#unanswered--;
      if (this.#unanswered === 0) for (const resolve of this.#drainWaiters.splice(0)) resolve();
    }
  }

  async #receiveObserved(
    instrumentation: Instrumentation,
    flow: Flow,
    delivery: Delivery,
    options: ReceiveOptions,
  ): Promise<Reply> {
    const observation = instrumentation.observeDelivery({
      flow: flow.name,
      header: (name) => delivery.headers.get(name) ?? null,
    });
    if (observation === null) return this.#receiveAndReport(flow, delivery, options);
    const progress = newDeliveryProgress(observation.trace);
    try {
      const reply = await observation.run(() => this.#receiveAndReport(flow, delivery, options, progress));
      observation.end(deliveryEndOf(progress, reply.status));
      return reply;
    } catch (error) {
      progress.code ??= codeOf(error);
      observation.end(deliveryEndOf(progress, ANSWER_STATUS[progress.code]));
      throw error;
    }
  }

  /** Receives a delivery, and passes the result to the caller if the caller wants it. */
  async #receiveAndReport(
    flow: Flow,
    delivery: Delivery,
    { mounted = false, onEnd }: ReceiveOptions,
    observedProgress: DeliveryProgress | null = null,
  ): Promise<Reply> {
    if (onEnd === undefined) return this.#receive(flow, delivery, mounted, observedProgress);
    const progress = observedProgress ?? newDeliveryProgress(null);
    const reply = await this.#receive(flow, delivery, mounted, progress);
    onEnd(deliveryEndOf(progress, reply.status), progress.event);
    return reply;
  }

  /** Observes a request that is answered before its body is read. */
  #answerUnread(flow: Flow, reply: Reply, code: DeliveryErrorCode | null): Reply {
    const { instrumentation } = this.#dependencies;
    if (instrumentation !== null) {
      const outcome = code === null ? "answered" : "refused";
      const observation = instrumentation.observeDelivery({ flow: flow.name, header: () => null });
      observation?.end({ outcome, status: reply.status, code, eventId: null, reason: null });
    }
    return this.#closeConnectionIfClosing(reply);
  }

  /** A closing process ends each connection with its answer, so that the sender's next request goes to another process. */
  #closeConnectionIfClosing(reply: Reply): Reply {
    return this.#dependencies.lifecycle.isClosing ? closingReply(reply) : reply;
  }

  /** From bytes to an answer. Verification and acceptance share one deadline. */
  async #receive(
    flow: Flow,
    delivery: Delivery,
    mounted: boolean,
    progress: DeliveryProgress | null,
  ): Promise<Reply> {
    const { settings, environment: clock, outcomes, inbox, lifecycle, runner } = this.#dependencies;
    let isAuthentic = false;
    const refuse: RefuseDelivery = (...fault) => {
      if (progress !== null) progress.code = fault[0];
      return outcomes.refuse(flow, delivery.remoteAddress, isAuthentic, fault);
    };
    const fault = this.#findFault(flow, delivery, mounted);
    if (fault !== null) return refuse(...fault);
    let isInFlight = true;
    let failure: unknown = null;
    this.#inFlight++;
    const deadline = new Deadline(clock, settings.acceptTimeoutMs);
    try {
      const turn = this.#eventLoopBudget?.waitForTurn() ?? null;
      if (turn !== null) {
        await turn;
        if (deadline.remainingMs <= this.#lastAcceptMs) return refuse(...this.#lateTurnObstacle(deadline));
      }
      // A mounted receiver that runs in the background should run by now, so a start that fails here is repeated too.
      const shouldStart = mounted && this.#runOf(delivery) === "background";
      if (!lifecycle.isReady) await deadline.race(shouldStart ? lifecycle.start() : lifecycle.prepare());
      const leftAtStartMs = deadline.remainingMs;
      let verification = flow.verify(delivery, clock.now());
      if (isThenable(verification)) {
        // A delivery that waits for a resolver does not count as in flight. Otherwise strangers could take all places with
        // made-up merchants.
        isInFlight = false;
        this.#inFlight--;
        verification = await deadline.race(withResolverErrors(verification));
      }
      if (verification.ok === false) {
        return refuse(verification.code, verification.why, null, verification.fix);
      }
      if (!isInFlight) {
        if (this.#inFlight >= settings.maxInFlight) return refuse(...this.#overloadObstacle());
        isInFlight = true;
        this.#inFlight++;
      }
      // `close` may have been called while a key was looked up.
      if (lifecycle.isClosing) return refuse("ERR_CLOSING", "the receiver is closing");
      outcomes.recordAuthentic(flow);
      if (verification.ok === null) return verification.reply;
      isAuthentic = true;
      if (progress !== null) progress.event = verification.reading.verified;
      const run = this.#runOf(delivery);
      const acceptedReply = flow.source?.acceptedReply ?? RECEIVED_REPLY;
      const event = this.#eventToAccept(flow, verification.reading, run);
      if (event === null) {
        if (progress !== null) progress.outcome = "unwanted";
        return acceptedReply;
      }
      if (run === "background" && !lifecycle.isRunning) {
        if (!lifecycle.shouldRun && !mounted) {
          return refuse("ERR_NOT_STARTED", 'run is "background" and receiver.start() has not been called');
        }
        await deadline.race(lifecycle.start());
      }
      const { ack, maxHeld } = settings;
      const accepting = inbox.accept(event, {
        maxHeld,
        deadlineMs: deadline.remainingMs,
        delayMs: ack === "enqueued" && run === "after-response" ? RESERVED_FOR_REQUEST_MS : 0,
        runAtOnce: ack === "handled" ? runner : undefined,
        onFailure: (cause) => {
          failure = cause;
        },
        context: currentContext(),
        trace: progress?.trace,
      });
      const acceptResult = isThenable(accepting) ? await deadline.race(accepting) : accepting;
      this.#lastAcceptMs = leftAtStartMs - deadline.remainingMs;
      if (progress !== null) progress.acceptResult = acceptResult;
      if (acceptResult.outcome === "expired") return this.#refuseExpired(verification, acceptResult, refuse);
      // The event is stored. A refusal from here on loses nothing, so it does not count as the refusal of an authentic delivery.
      isAuthentic = false;
      outcomes.recordAccepted(verification.reading, acceptResult);
      if (acceptResult.outcome === "stale") return acceptedReply;
      if (settings.ack === "handled") return await this.#handle(acceptResult, refuse, acceptedReply);
      if (run === "after-response") this.#workAfter(delivery, acceptResult);
      else this.notifyWorker(acceptResult, (work) => delivery.waitUntil?.(work));
      return acceptedReply;
    } catch (error) {
      const cause = failure ?? lifecycle.startProblem?.cause ?? null;
      if (error !== TIME_IS_UP || cause === null)
        return refuse(codeOf(error), describeFailure(error), originOf(error));
      return refuse(
        codeOf(cause),
        `${describeFailure(error)}, since: ${describeFailure(cause)}`,
        originOf(cause),
      );
    } finally {
      deadline.cancel();
      if (isInFlight) this.#inFlight--;
    }
  }

  /** The event to accept; null for a source's event without a handler. Such an event is only counted. */
  #eventToAccept(
    { name: flow, source }: Flow,
    { verified }: ReadDelivery,
    run: Settings["run"],
  ): VerifiedEvent | null {
    if (source === undefined || verified.verdict !== "run") return verified;
    const treatment = this.#dependencies.treatmentOf(flow, verified.name);
    if (treatment === "handled" || (treatment === "none" && source.unhandled === "hold")) return verified;
    // The handlers are in another process, and this process does not know their names.
    if (treatment === "unknown" || run === "elsewhere") {
      return { ...verified, delivery: { ...verified.delivery, mayBeUnhandled: true } };
    }
    if (treatment === "none") this.#unhandled.count(flow, verified.name);
    return null;
  }

  /** The reason to refuse a delivery before it is verified; null if there is none. */
  #findFault(flow: Flow, delivery: Delivery, mounted: boolean): Fault | null {
    const maxBodyBytes = this.#maxBodyBytesOf(flow);
    const code = mounted ? null : findHeadFault(delivery, maxBodyBytes, flow.source !== undefined);
    if (code !== null) return [code, "the request's head"];
    if (delivery.rawBody.byteLength > maxBodyBytes) {
      return ["ERR_BODY_TOO_LARGE", "the body's length"];
    }
    return this.#findObstacle();
  }

  /** The reason to refuse every delivery now; null if there is none. */
  #findObstacle(): Obstacle | null {
    const { settings, lifecycle } = this.#dependencies;
    if (lifecycle.isClosing) return ["ERR_CLOSING", "the receiver is closing"];
    return this.#inFlight < settings.maxInFlight ? null : this.#overloadObstacle();
  }

  #overloadObstacle(): Obstacle {
    return ["ERR_OVERLOADED", `${this.#inFlight} deliveries are in flight`];
  }

  /** The delivery has waited for its turn for so long that it could not be answered in time. */
  #lateTurnObstacle({ remainingMs: leftMs }: Deadline): Obstacle {
    const [left, took] = [leftMs, this.#lastAcceptMs].map(Math.ceil);
    return [
      "ERR_OVERLOADED",
      `its turn came ${left} ms before the end of acceptTimeoutMs, and the last one took ${took} ms`,
    ];
  }

  #refuseExpired(verification: AuthenticReading, acceptResult: AcceptResult, refuse: RefuseDelivery): Reply {
    const { signedBefore } = acceptResult;
    if (signedBefore !== undefined) this.#dependencies.notices.post({ type: "window-shrunk", signedBefore });
    return refuse(...expiredFault(verification, acceptResult));
  }

  /**
   * Decides where the handlers for this delivery run. A platform that provides a `waitUntil` may freeze the process
   * after the answer, so events run after the response there by default. If the program has called `start()`, the
   * process keeps running.
   */
  #runOf(delivery: Delivery): NonNullable<Settings["run"]> {
    const { settings, lifecycle } = this.#dependencies;
    if (settings.run !== undefined) return settings.run;
    return delivery.waitUntil === undefined || lifecycle.shouldRun ? "background" : "after-response";
  }

  /** `ack: "handled"`: every copy is answered with the event's state after this attempt. */
  async #handle({ whenHandled }: AcceptResult, refuse: RefuseDelivery, acceptedReply: Reply): Promise<Reply> {
    const { settings, environment: clock, inbox } = this.#dependencies;
    if (whenHandled === undefined) return acceptedReply;
    const budget = new Deadline(clock, settings.handledBudgetMs);
    try {
      const { state } = await budget.race(whenHandled);
      switch (state) {
        case "done":
        case "stale":
        case "discarded":
          return acceptedReply;
        case "held":
          return inbox.durability === "process"
            ? refuse("ERR_HELD", "held in memory, which may be lost")
            : acceptedReply;
        default:
          return refuse("ERR_NOT_HANDLED", `the event is ${state ?? "gone"}`);
      }
    } catch (error) {
      if (error === TIME_IS_UP)
        return refuse("ERR_NOT_HANDLED", "the handlers took longer than handledBudgetMs");
      throw error;
    } finally {
      budget.cancel();
    }
  }

  /** `run: "after-response"`: runs this event, then other due events. */
  #workAfter(delivery: Delivery, { outcome, eventId }: AcceptResult): void {
    const { inbox, runner, notices } = this.#dependencies;
    const context = currentContext();
    const work = (async () => {
      if (outcome !== "duplicate") await inbox.runEvent(runner, eventId, { context, afterOthers: true });
      if (!this.#dependencies.lifecycle.isClosing) await this.#dependencies.work();
    })().catch((error: unknown) => notices.post(inboxErrorNotice("work", error)));
    delivery.waitUntil?.(work);
  }

  /**
   * Calls `notifyWorker` for an event that was stored but not begun. Another process must run it. A platform waits for
   * the call before it sends the answer, so the call has a time limit.
   */
  notifyWorker(
    { isBegun, outcome, eventId }: AcceptResult,
    waitUntil: (work: Promise<unknown>) => void,
  ): void {
    const { settings, notices, environment } = this.#dependencies;
    const { notifyWorker, acceptTimeoutMs } = settings;
    const isStored = outcome === "new" || outcome === "progress" || outcome === "held";
    if (notifyWorker === undefined || isBegun || !isStored) return;
    const notifying = callWithDeadline(environment, acceptTimeoutMs, async () => notifyWorker(eventId));
    // Even if the call fails, the event is stored, and a worker finds it.
    const notified = notifying.catch((error: unknown) =>
      notices.post(inboxErrorNotice("notifyWorker", error === TIME_IS_UP ? notifyTimeoutError() : error)),
    );
    waitUntil(notified);
  }
}

function notifyTimeoutError(): PayhooksError {
  return new PayhooksError(
    "ERR_ACCEPT_TIMEOUT",
    "notifyWorker has not ended within limits.acceptTimeoutMs.",
    {
      fix: "Check whether its queue is away. The event is stored, and a worker finds it without a hint.",
    },
  );
}

/** Makes an error of the failing resolver. `TIME_IS_UP` is passed on unchanged. */
async function withResolverErrors(
  verifying: Promise<Verification | ChallengeAnswer>,
): Promise<Verification | ChallengeAnswer> {
  try {
    return await verifying;
  } catch (cause) {
    throw cause === TIME_IS_UP ? cause : resolverError(cause);
  }
}

function expiredFault(verification: AuthenticReading, { signedBefore }: AcceptResult): Fault {
  if (verification.outsideWindow === "ERR_TIMESTAMP_FUTURE") {
    return [verification.outsideWindow, "signed more than 24 h in the future, and not recorded"];
  }
  return [
    "ERR_TIMESTAMP_EXPIRED",
    signedBefore !== undefined
      ? "the memory inbox no longer knows events signed that long ago: raise maxRecords"
      : "signed longer ago than windowMs, and not recorded",
  ];
}

/** The answer to an unexpected error. The code of a wrong set-up is only logged, because it does not concern the sender. */
function codeOf(error: unknown): DeliveryErrorCode {
  if (error === TIME_IS_UP) return "ERR_ACCEPT_TIMEOUT";
  if (!isPayhooksError(error)) return "ERR_INBOX_UNAVAILABLE";
  return Object.hasOwn(ANSWER_STATUS, error.code) ? (error.code as DeliveryErrorCode) : "ERR_MISCONFIGURED";
}

function describeFailure(error: unknown): string {
  if (error === TIME_IS_UP) return "no answer within limits.acceptTimeoutMs";
  const isAnswer = isPayhooksError(error) && error.code === codeOf(error);
  return isAnswer ? error.message : describeError(error);
}
