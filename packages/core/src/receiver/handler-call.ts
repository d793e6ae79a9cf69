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
import type { Registered } from "../handlers/registry.ts";
import type { Lease } from "../inbox/contract/inbox.ts";
import { factsOf, type HandlerState } from "../inbox/record/lease.ts";
import type { NoticeBoard } from "../notices/board.ts";
import type { Logger } from "../notices/logger.ts";
import type { Happening, Notice } from "../notices/notice.ts";
import { factsOfThrown } from "../notices/thrown.ts";
import type { Cancellation } from "../time/cancellation.ts";
import { type Clock, Stopwatch } from "../time/clock.ts";
import { RunContext } from "./context.ts";
import type { HandlerEnd, HandlerFacts, Instrumentation, Observation } from "./instrumentation.ts";
import { lose, type Progress, retryIn } from "./progress.ts";

/** What a call of a handler needs besides its lease. */
export interface HandlerCallDependencies {
  readonly notices: NoticeBoard;
  readonly logger: Logger;
  readonly clock: Clock;
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
  readonly skipped: () => void;
}

/** A call of a handler. Its result has no meaning. */
export type Call = (context: HandlerContext) => unknown;
type Outcome = { readonly ok: true } | { readonly ok: false; readonly error: unknown };

/**
 * Runs one handler, if it may run now. One write stores its end, together with the start of the next handler or the end of the run. So
 * there is no gap in between.
 *
 * @returns `done`: the handler need not run again. `open`: it has not finished, and `progress` has the consequence.
 */
export type RunHandler = (
  lease: Lease,
  handler: Registered,
  progress: Progress,
  call: Call,
) => Promise<"done" | "open">;

export function createRunHandler(dependencies: HandlerCallDependencies): RunHandler {
  const { notices, logger, clock, effects, instrumentation } = dependencies;
  /** The calls that are past their timeout and have not ended, by event and handler, with their attempt. */
  const overdue = new Map<string, number>();

  const runHandler: RunHandler = async (lease, handler, progress, call) => {
    const { name } = handler;
    const before = lease.data.handlerStates[name];
    if (before?.state === "done") return "done";
    if (before?.state === "given-up") {
      progress.givenUp ??= { reason: before.reason ?? "exhausted", error: before.error ?? "" };
      return "open";
    }
    const attempts = before?.attempts ?? 0;
    const hasDied = before?.state === "started";
    const warnOfDeath = (): void => {
      if (hasDied) notices.post({ type: "double-risk", why: "died-while-running", ...factsOf(lease.data) });
    };
    if (hasDied && (handler.onCrash === "hold" || attempts >= handler.maxAttempts)) {
      warnOfDeath();
      const error = `the process died in attempt ${attempts}`;
      return giveUp(lease, handler, progress, { reason: "crashed", error, attempt: attempts, stack: null });
    }
    const isEarly = before !== undefined && before.dueAt > lease.data.now;
    if (isEarly && !lease.data.isEarlyAllowed) {
      retryIn(progress, waitOf(before, lease, progress));
      return "open";
    }
    const attempt = attempts + 1;
    if (progress.startedAhead === name) progress.startedAhead = null;
    let outcome = overdueOf(lease, handler);
    let observation: Observation<HandlerEnd> | null = null;
    if (outcome === null && !(await mayTake(lease, handler, progress))) return "open";
    warnOfDeath();
    const startedAt = clock.now();
    let skipped = 0;
    if (outcome === null) {
      const isStarted = lease.data.started === name || (await start(lease, name, attempt, progress));
      const may = isStarted ? lease.mayCall() : "lost";
      if (may !== "yes") {
        handler.calls?.giveBack();
        // The handler was not called. So the next process that runs the event starts it as if it had not been started here.
        if (isStarted) progress.unwritten.push({ name, kind: "undone", before: before ?? null });
        if (may === "lost") return lose(progress);
        progress.handedBack = true;
        return "open";
      }
      if (notices.observed) notices.post({ type: "started", ...factsOf(lease.data), handler: name, attempt });
      lease.called();
      const isFirst = before === undefined && lease.data.replays === 0;
      if (instrumentation !== null) {
        observation = lease.context.run(() => instrumentation.handler(observedOf(lease, name, attempt)));
      }
      outcome = await callInTime(
        lease,
        handler,
        { attempt, isFirst, skipped: () => skipped++ },
        call,
        observation,
      );
    }
    if (outcome.ok) {
      observation?.end({ outcome: "done", error: undefined });
      progress.unwritten.push({ name, kind: "done", attempt, ...(skipped > 0 && { skipped }) });
      if (notices.observed) {
        const durationMs = clock.now() - startedAt;
        progress.unnoticed.push({ type: "done", ...factsOf(lease.data), handler: name, attempt, durationMs });
      }
      return "done";
    }
    const retryAfter = retryAfterOf(outcome.error);
    const thrown = factsOfThrown(outcome.error);
    const { error } = thrown;
    // If a handler asks to be tried again later, nothing went wrong.
    const stack = retryAfter === null ? thrown.stack : null;
    const counts = !isUncounted(outcome.error);
    const isRejected = isReject(outcome.error);
    // Anybody may have sent the copy that asked for this early attempt. So the attempt is not counted, and does not move the next one.
    const isExhausted = !isEarly && counts && attempt >= handler.maxAttempts;
    const isGivenUp = isRejected || isExhausted;
    observation?.end({ outcome: isGivenUp ? "given-up" : "retry", error: outcome.error });
    if (isGivenUp) {
      const reason = isRejected ? "rejected" : "exhausted";
      return giveUp(lease, handler, progress, { reason, error, attempt, stack });
    }
    const delayMs = isEarly
      ? waitOf(before, lease, progress)
      : counts
        ? (retryAfter ?? backoffOf(lease, handler, attempt))
        : uncountedBackoffMs(before?.delayWhenWrittenMs ?? 0);
    progress.unwritten.push(
      isEarly
        ? { name, kind: "undone", before: { ...before, error } }
        : { name, kind: "failed", attempt: counts ? attempt : attempts, delayMs, error },
    );
    const facts = { ...factsOf(lease.data), handler: name, attempt };
    progress.unnoticed.push({ type: "retry", ...facts, delayMs, error, stack });
    retryIn(progress, delayMs);
    return "open";
  };

  /** A failed attempt, if an earlier call of the handler is past its timeout and has not ended. Null: the handler may be called. */
  function overdueOf({ data }: Lease, { name, onTimeout }: Registered): Outcome | null {
    const attempt = onTimeout === "wait" ? overdue.get(`${data.eventId} ${name}`) : undefined;
    if (attempt === undefined) return null;
    const error = new Error(
      `attempt ${attempt} is over time and has not ended, so the handler was not called again`,
    );
    return { ok: false, error };
  }

  /**
   * Takes a place for a call of a handler that has a limit of its own. False if the call gets no place: then the event is put off or
   * handed back, and `progress` says which. Neither counts as an attempt.
   */
  async function mayTake(lease: Lease, { calls }: Registered, progress: Progress): Promise<boolean> {
    if (calls === null || calls.take()) return true;
    const turn = calls.wait(lease.data.isEarlyAllowed);
    if (turn === null) {
      retryIn(progress, calls.putOffMs(clock.monotonic()));
      return false;
    }
    // Write the results of the earlier handlers first, so that they are not called again if the process dies during the wait.
    const changes = progress.unwritten.splice(0);
    const isHeld = changes.length === 0 || (await lease.write(changes));
    if (isHeld) for (const notice of progress.unnoticed.splice(0)) notices.post(notice);
    if (isHeld && (await lease.waitWithoutPlace(turn.come))) return true;
    turn.leave();
    if (!isHeld || lease.mayCall() === "lost") lose(progress);
    else progress.handedBack = true;
    return false;
  }

  /** Writes the start of a handler, together with the ends of earlier handlers. False if the lease is lost. */
  async function start(lease: Lease, name: string, attempt: number, progress: Progress): Promise<boolean> {
    const changes = progress.unwritten.splice(0);
    if (lease.mayCall() !== "yes") {
      progress.unwritten.push(...changes);
      // No handler is started any more. The end of the run says why.
      return lease.mayCall() === "hand-back";
    }
    if (!(await lease.write([...changes, { name, kind: "started", attempt }]))) return false;
    for (const notice of progress.unnoticed.splice(0)) notices.post(notice);
    return true;
  }

  /**
   * The time until a handler's next attempt. It was computed by the store's clock when the run began. Since then, this process measures
   * the time, and not by the wall clock alone, which may be set back meanwhile.
   */
  function waitOf({ dueAt }: HandlerState, { data }: Lease, { since }: Progress): number {
    return Math.max(0, dueAt - data.now - since.elapsedMs);
  }

  function giveUp(
    lease: Lease,
    { name: handler }: Registered,
    progress: Progress,
    why: Pick<Extract<Notice, { type: "given-up" }>, "reason" | "error" | "attempt" | "stack">,
  ): "open" {
    const { reason, error, attempt } = why;
    progress.unwritten.push({ name: handler, kind: "given-up", attempt, reason, error });
    progress.unnoticed.push({ type: "given-up", ...factsOf(lease.data), handler, ...why });
    progress.givenUp ??= { reason, error };
    return "open";
  }

  /**
   * Calls the handler with a signal and a time limit. If the handler ignores both, it continues to run, but its result is no
   * longer used, and it is not called for this event again before it has ended.
   */
  function callInTime(
    lease: Lease,
    handler: Registered,
    which: CallFacts,
    call: Call,
    observation: Observation<HandlerEnd> | null,
  ): Promise<Outcome> {
    const cancellation = lease.cancellation.derive();
    const context = contextOf(lease, handler, which, cancellation);
    const key = `${lease.data.eventId} ${handler.name}`;
    return new Promise((resolve) => {
      const { name, calls, onTimeout } = handler;
      const time = new Stopwatch(clock);
      let end = (): void => calls?.ended(time.elapsedMs);
      const cancelTimer = clock.after(handler.timeoutMs, () => {
        const error = new Error(`timed out after ${handler.timeoutMs} ms`);
        notices.post({ type: "double-risk", why: "timeout", ...factsOf(lease.data) });
        cancellation.cancel(error);
        overdue.set(key, which.attempt);
        if (onTimeout === "rerun") {
          end();
          end = () => {};
        } else {
          if (calls?.overdue() === true) notices.post(allOverdue(name));
          end = () => calls?.overdueEnded(time.elapsedMs);
        }
        resolve({ ok: false, error });
      });
      const settle = (outcome: Outcome): void => {
        cancelTimer();
        end();
        if (overdue.get(key) === which.attempt) overdue.delete(key);
        resolve(outcome);
      };
      // After a lost effect, a person must find out whether the effect has happened. So its error replaces any error of the handler.
      const fail = (error: unknown): void => settle({ ok: false, error: context.lostEffect() ?? error });
      try {
        const answer = lease.context.run(() =>
          observation === null ? call(context) : observation.run(() => call(context)),
        );
        Promise.resolve(answer)
          .then(() => {
            const ended = (): void => settle({ ok: true });
            // A transaction that the handler did not await can still fail. Then the handler counts as failed, too.
            const atRest = context.effectsAtRest();
            return atRest === null ? ended() : atRest.then(ended);
          })
          .catch(fail);
      } catch (error) {
        fail(error);
      }
    });
  }

  function contextOf(
    lease: Lease,
    { name }: Registered,
    { attempt, isFirst, skipped: count }: CallFacts,
    cancellation: Cancellation,
  ): RunContext {
    const skipped = (effect: string): void => {
      count();
      notices.post({
        type: "effect-skipped",
        ...factsOf(lease.data),
        handler: name,
        attempt,
        effect,
        unexpected: isFirst,
      });
    };
    const given = { effects, now: clock.now(), skipped };
    return new RunContext(lease, name, attempt, cancellation, logger, given);
  }

  return runHandler;
}

function observedOf({ data }: Lease, handler: string, attempt: number): HandlerFacts {
  const { replays, trace } = data;
  return { ...factsOf(data), handler, attempt, replays, trace };
}

/** The notice that a handler is not called until one of its calls ends. */
function allOverdue(name: string): Happening {
  return {
    type: "warning",
    what: `All calls that the concurrency of the handler ${name} allows are past its timeoutMs and have not ended. It is not called before one of them ends.`,
    fix: 'Does the handler stop when ctx.signal aborts, and have its own calls a time limit? With onTimeout: "rerun", a call past its time counts no more.',
  };
}

function backoffOf({ context }: Lease, handler: Registered, attempt: number): number {
  let given: unknown;
  try {
    given = context.run(() => handler.backoffMs(attempt));
  } catch {
    // A mistake in the merchant's own function must not look like a handler that died.
  }
  return delayOf(given) ?? defaultBackoffMs(attempt);
}
