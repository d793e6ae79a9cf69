import type { Effects } from "../effects/effects.ts";
import {
  defaultBackoffMs,
  delayOf,
  type HandlerContext,
  isReject,
  isUncounted,
  retryAfterOf,
  uncountedBackoffMs,
} from "../handlers/handler.ts";
import type { HandlerSettings } from "../handlers/registry.ts";
import type { RunHandle } from "../inbox/contract/inbox.ts";
import type { HandlerState } from "../inbox/record/handler-state.ts";
import { factsOf } from "../inbox/record/run-input.ts";
import type { Logger } from "../notices/logger.ts";
import type { Notice, UndatedNotice } from "../notices/notice.ts";
import type { NoticeBoard } from "../notices/notice-board.ts";
import { factsOfThrown } from "../notices/thrown.ts";
import type { Cancellation } from "../time/cancellation.ts";
import { Stopwatch } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import { RunContext } from "./context.ts";
import type { HandlerEnd, HandlerFacts, Instrumentation, Observation } from "./instrumentation.ts";
import { loseLease, type RunProgress, scheduleRetry } from "./run-progress.ts";

export interface HandlerCallDependencies {
  readonly notices: NoticeBoard;
  readonly logger: Logger;
  readonly clock: Environment;
  readonly effects: Effects | null;
  /** Null: the receiver is not measured, so no observations are made. */
  readonly instrumentation: Instrumentation | null;
}

/** The facts of one call of a handler, as its context has them. */
interface CallFacts {
  readonly attempt: number;
  /** True if the inbox knows of no earlier call for this event. */
  readonly isFirst: boolean;
  /** Called for each skipped effect. */
  readonly onSkipped: () => void;
}

/** A call of a handler. Its result has no meaning. */
export type HandlerCall = (context: HandlerContext) => unknown;
type CallOutcome = { readonly ok: true } | { readonly ok: false; readonly error: unknown };

/**
 * Runs one handler, if it may run now. One write stores its end, together with the start of the next handler or the end
 * of the run. So there is no gap in between.
 *
 * @returns `done`: the handler need not run again. `open`: it has not finished, and `progress` has the consequence.
 */
export type RunHandler = (
  run: RunHandle,
  handler: HandlerSettings,
  progress: RunProgress,
  call: HandlerCall,
) => Promise<"done" | "open">;

export function createRunHandler(dependencies: HandlerCallDependencies): RunHandler {
  const { notices, logger, clock, effects, instrumentation } = dependencies;
  /** The calls that are past their timeout and have not ended, by event and handler, with their attempt. */
  const overdueCalls = new Map<string, number>();

  const runHandler: RunHandler = async (run, handler, progress, call) => {
    const { name } = handler;
    const state = run.input.handlerStates[name];
    if (state?.state === "done") return "done";
    if (state?.state === "given-up") {
      progress.givenUp ??= { reason: state.reason ?? "exhausted", error: state.error ?? "" };
      return "open";
    }
    const attempts = state?.attempts ?? 0;
    const hasDied = state?.state === "started";
    const warnOfDeath = (): void => {
      if (hasDied) notices.post({ type: "double-risk", why: "died-while-running", ...factsOf(run.input) });
    };
    if (hasDied && (handler.onCrash === "hold" || attempts >= handler.maxAttempts)) {
      warnOfDeath();
      const error = `the process died in attempt ${attempts}`;
      return giveUp(run, handler, progress, { reason: "crashed", error, attempt: attempts, stack: null });
    }
    const isEarly = state !== undefined && state.dueAt > run.input.now;
    if (isEarly && !run.input.isEarlyAllowed) {
      scheduleRetry(progress, msUntilDue(state, run, progress));
      return "open";
    }
    const attempt = attempts + 1;
    if (progress.startedAhead === name) progress.startedAhead = null;
    let outcome = overdueOutcomeOf(run, handler);
    let observation: Observation<HandlerEnd> | null = null;
    if (outcome === null && !(await takePlace(run, handler, progress))) return "open";
    warnOfDeath();
    const startedAt = clock.monotonic();
    let skippedCount = 0;
    if (outcome === null) {
      const isStarted = run.input.startedHandler === name || (await writeStart(run, name, attempt, progress));
      const permission = isStarted ? run.mayCall() : "lost";
      if (permission !== "yes") {
        handler.callLimit?.release();
        // The handler was not called. So the next process that runs the event starts it as if it had not been started here.
        if (isStarted) progress.unwrittenChanges.push({ name, kind: "undone", before: state ?? null });
        if (permission === "lost") return loseLease(progress);
        progress.isHandedBack = true;
        return "open";
      }
      if (notices.isObserved)
        notices.post({ type: "started", ...factsOf(run.input), handler: name, attempt });
      run.noteCall();
      const isFirst = state === undefined && run.input.replays === 0;
      if (instrumentation !== null) {
        observation = run.context.run(() =>
          instrumentation.observeHandler(handlerFactsOf(run, name, attempt)),
        );
      }
      outcome = await callInTime(
        run,
        handler,
        { attempt, isFirst, onSkipped: () => skippedCount++ },
        call,
        observation,
      );
    }
    if (outcome.ok) {
      observation?.end({ outcome: "done", error: undefined });
      progress.unwrittenChanges.push({
        name,
        kind: "done",
        attempt,
        ...(skippedCount > 0 && { skipped: skippedCount }),
      });
      if (notices.isObserved) {
        const durationMs = Math.round(clock.monotonic() - startedAt);
        progress.unsentNotices.push({
          type: "done",
          ...factsOf(run.input),
          handler: name,
          attempt,
          durationMs,
        });
      }
      return "done";
    }
    const retryAfter = retryAfterOf(outcome.error);
    const thrownFacts = factsOfThrown(outcome.error);
    const { error } = thrownFacts;
    // If a handler asks to be tried again later, nothing went wrong.
    const stack = retryAfter === null ? thrownFacts.stack : null;
    const isCounted = !isUncounted(outcome.error);
    const isRejected = isReject(outcome.error);
    // Anybody may have sent the copy that asked for this early attempt. So the attempt is not counted, and does not
    // move the next one.
    const isExhausted = !isEarly && isCounted && attempt >= handler.maxAttempts;
    const isGivenUp = isRejected || isExhausted;
    observation?.end({ outcome: isGivenUp ? "given-up" : "retry", error: outcome.error });
    if (isGivenUp) {
      const reason = isRejected ? "rejected" : "exhausted";
      return giveUp(run, handler, progress, { reason, error, attempt, stack });
    }
    const delayMs = isEarly
      ? msUntilDue(state, run, progress)
      : isCounted
        ? (retryAfter ?? backoffOf(run, handler, attempt, clock))
        : uncountedBackoffMs(state?.delayWhenWrittenMs ?? 0, clock.token());
    progress.unwrittenChanges.push(
      isEarly
        ? { name, kind: "undone", before: { ...state, error } }
        : { name, kind: "failed", attempt: isCounted ? attempt : attempts, delayMs, error },
    );
    const facts = { ...factsOf(run.input), handler: name, attempt };
    progress.unsentNotices.push({ type: "retry", ...facts, delayMs, error, stack });
    scheduleRetry(progress, delayMs);
    return "open";
  };

  /**
   * If an earlier call has timed out and still runs, a failed attempt in place of another call. Null: the handler may be called.
   */
  function overdueOutcomeOf({ input }: RunHandle, { name, onTimeout }: HandlerSettings): CallOutcome | null {
    const attempt = onTimeout === "wait" ? overdueCalls.get(`${input.eventId} ${name}`) : undefined;
    if (attempt === undefined) return null;
    const error = new Error(
      `attempt ${attempt} is over time and has not ended, so the handler was not called again`,
    );
    return { ok: false, error };
  }

  /**
   * Takes a place for a call of a handler that has a limit of its own. False if the call gets no place: then the event
   * is deferred or handed back, and `progress` says which. Neither counts as an attempt.
   */
  async function takePlace(
    run: RunHandle,
    { callLimit }: HandlerSettings,
    progress: RunProgress,
  ): Promise<boolean> {
    if (callLimit === null || callLimit.tryTake()) return true;
    const queuedCall = callLimit.enqueue(!run.input.isEarlyAllowed);
    if (queuedCall === null) {
      scheduleRetry(progress, callLimit.deferMs(clock.monotonic()));
      return false;
    }
    // Write the results of the earlier handlers first, so that they are not called again if the process dies during the wait.
    const changes = progress.unwrittenChanges.splice(0);
    const isLeaseHeld = changes.length === 0 || (await run.write(changes));
    if (isLeaseHeld) for (const notice of progress.unsentNotices.splice(0)) notices.post(notice);
    if (isLeaseHeld && (await run.waitWithoutPlace(queuedCall.turn))) return true;
    queuedCall.leaveQueue();
    if (!isLeaseHeld || run.mayCall() === "lost") loseLease(progress);
    else progress.isHandedBack = true;
    return false;
  }

  /** Writes the start of a handler, together with the ends of earlier handlers. False if the lease is lost. */
  async function writeStart(
    run: RunHandle,
    name: string,
    attempt: number,
    progress: RunProgress,
  ): Promise<boolean> {
    const changes = progress.unwrittenChanges.splice(0);
    if (run.mayCall() !== "yes") {
      progress.unwrittenChanges.push(...changes);
      // No handler is started any more. The end of the run says why.
      return run.mayCall() === "hand-back";
    }
    if (!(await run.write([...changes, { name, kind: "started", attempt }]))) return false;
    for (const notice of progress.unsentNotices.splice(0)) notices.post(notice);
    return true;
  }

  /**
   * The time until a handler's next attempt. It was computed by the store's clock when the run began. Since then, this
   * process measures the time. It does not rely on the wall clock alone, because that may be set back meanwhile.
   */
  function msUntilDue({ dueAt }: HandlerState, { input }: RunHandle, { since }: RunProgress): number {
    return Math.max(0, dueAt - input.now - since.elapsedMs);
  }

  function giveUp(
    run: RunHandle,
    { name: handler }: HandlerSettings,
    progress: RunProgress,
    failure: Pick<Extract<Notice, { type: "given-up" }>, "reason" | "error" | "attempt" | "stack">,
  ): "open" {
    const { reason, error, attempt } = failure;
    progress.unwrittenChanges.push({ name: handler, kind: "given-up", attempt, reason, error });
    progress.unsentNotices.push({ type: "given-up", ...factsOf(run.input), handler, ...failure });
    progress.givenUp ??= { reason, error };
    return "open";
  }

  /**
   * Calls the handler with a signal and a time limit. If the handler ignores both, it continues to run, but its result is no
   * longer used, and it is not called for this event again before it has ended.
   */
  function callInTime(
    run: RunHandle,
    handler: HandlerSettings,
    facts: CallFacts,
    call: HandlerCall,
    observation: Observation<HandlerEnd> | null,
  ): Promise<CallOutcome> {
    const cancellation = run.cancellation.derive();
    const context = contextOf(run, handler, facts, cancellation);
    const key = `${run.input.eventId} ${handler.name}`;
    return new Promise((resolve) => {
      const { name, callLimit, onTimeout } = handler;
      const time = new Stopwatch(clock);
      let releasePlace = (): void => callLimit?.recordCallEnd(time.elapsedMs);
      const cancelTimer = clock.after(handler.timeoutMs, () => {
        const error = new Error(`timed out after ${handler.timeoutMs} ms`);
        notices.post({ type: "double-risk", why: "timeout", ...factsOf(run.input) });
        cancellation.cancel(error);
        overdueCalls.set(key, facts.attempt);
        if (onTimeout === "rerun") {
          releasePlace();
          releasePlace = () => {};
        } else {
          if (callLimit?.recordOverdueCall() === true) notices.post(allCallsOverdueWarning(name));
          releasePlace = () => callLimit?.recordOverdueCallEnd(time.elapsedMs);
        }
        resolve({ ok: false, error });
      });
      const settle = (outcome: CallOutcome): void => {
        cancelTimer();
        releasePlace();
        if (overdueCalls.get(key) === facts.attempt) overdueCalls.delete(key);
        resolve(outcome);
      };
      // After a lost effect, a person must find out whether the effect has happened. So its error replaces any error of
      // the handler.
      const fail = (error: unknown): void => settle({ ok: false, error: context.lostEffectError() ?? error });
      try {
        const result = run.context.run(() =>
          observation === null ? call(context) : observation.run(() => call(context)),
        );
        Promise.resolve(result)
          .then(() => {
            const succeed = (): void => settle({ ok: true });
            // A transaction that the handler did not await can still fail. Then the handler counts as failed, too.
            const effectsSettled = context.waitForEffects();
            return effectsSettled === null ? succeed() : effectsSettled.then(succeed);
          })
          .catch(fail);
      } catch (error) {
        fail(error);
      }
    });
  }

  function contextOf(
    run: RunHandle,
    { name }: HandlerSettings,
    { attempt, isFirst, onSkipped }: CallFacts,
    cancellation: Cancellation,
  ): RunContext {
    const reportSkipped = (effect: string): void => {
      onSkipped();
      notices.post({
        type: "effect-skipped",
        ...factsOf(run.input),
        handler: name,
        attempt,
        effect,
        unexpected: isFirst,
      });
    };
    const effectDependencies = { effects, now: clock.now(), onSkipped: reportSkipped };
    return new RunContext(run, name, attempt, cancellation, logger, effectDependencies);
  }

  return runHandler;
}

function handlerFactsOf({ input }: RunHandle, handler: string, attempt: number): HandlerFacts {
  const { replays, trace } = input;
  return { ...factsOf(input), handler, attempt, replays, trace };
}

/** The notice that a handler is not called until one of its calls ends. */
function allCallsOverdueWarning(name: string): UndatedNotice {
  return {
    type: "warning",
    what: `All calls that the concurrency of the handler ${name} allows are past its timeoutMs and have not ended. It is not called before one of them ends.`,
    fix: 'Make the handler stop when ctx.signal aborts, and give its own calls a time limit. With onTimeout: "rerun", a call past its timeoutMs no longer counts.',
  };
}

function backoffOf(
  { context }: RunHandle,
  { backoffMs }: HandlerSettings,
  attempt: number,
  environment: Environment,
): number {
  if (backoffMs === null) return defaultBackoffMs(attempt, environment.token());
  let delayMs: unknown;
  try {
    delayMs = context.run(() => backoffMs(attempt));
  } catch {
    // A mistake in the merchant's own function must not look like a handler that died.
  }
  return delayOf(delayMs) ?? defaultBackoffMs(attempt, environment.token());
}
