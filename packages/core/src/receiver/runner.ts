import type { Effects } from "../effects/effects.ts";
import type { Flow, Verified } from "../flows/flow.ts";
import type { PaymentsFlow } from "../flows/payments.ts";
import {
  defaultBackoffMs,
  delayOf,
  type HandlerContext,
  type HeldEvent,
  isReject,
  retryAfterOf,
} from "../handlers/handler.ts";
import { missingHandlers } from "../handlers/missing-handlers.ts";
import type { Registered, Registry } from "../handlers/registry.ts";
import type { Lease, RunEnd, Runner } from "../inbox/inbox.ts";
import type { VerifiedEvent } from "../inbox/record/event.ts";
import {
  type Ending,
  factsOf,
  type LeaseData,
  type Step,
  type StepChange,
  TELL_PREFIX,
} from "../inbox/record/lease.ts";
import type { NoticeBoard } from "../notices/board.ts";
import type { Logger } from "../notices/logger.ts";
import { type Happening, inboxError, type Notice } from "../notices/notice.ts";
import { factsOfThrown } from "../notices/thrown.ts";
import type { AnyEvent } from "../protocol/events.ts";
import { type GivenUp, type HeldReason, isEntry } from "../protocol/held-reasons.ts";
import type { Cancellation } from "../time/cancellation.ts";
import { type Clock, Stopwatch } from "../time/clock.ts";
import { RunContext } from "./context.ts";

/** What the runner takes from the receiver. */
export interface RunnerParts {
  readonly registry: Registry;
  readonly flows: { readonly payments: PaymentsFlow | null; readonly connect: Flow | null };
  readonly notices: NoticeBoard;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly alreadyHandled: ((event: AnyEvent) => boolean | Promise<boolean>) | undefined;
  readonly effects: Effects | null;
}

/** A question to the merchant's code, asked under a lease and retried like a handler. */
const QUESTION: Omit<Registered, "name"> = {
  timeoutMs: 60_000,
  maxAttempts: 25,
  backoffMs: defaultBackoffMs,
  onCrash: "rerun",
};
const ALREADY_HANDLED: Registered = { ...QUESTION, name: "?alreadyHandled" };
const CONFIRM: Registered = { ...QUESTION, name: `${TELL_PREFIX}?confirm` };

/** The detail of an event whose record would have expired by now. Nobody can say whether it ran before. */
const TOO_OLD =
  "signed so long ago that it may have run and been forgotten: only a replay with evenIfExpired runs it";

/** The results so far of the steps of one run. */
interface Progress {
  /** States of handlers that have not been written yet. */
  readonly unwritten: StepChange[];
  /** Notices to send once those states are written. */
  readonly unnoticed: Happening[];
  /** The step whose start was written together with the lease; null once the run has reached it. */
  unopened: string | null;
  /** Measures the time since the run began. */
  readonly since: Stopwatch;
  /** When the next attempt is due, in ms from now; null when none is. */
  retryInMs: number | null;
  givenUp: { readonly reason: GivenUp; readonly error: string } | null;
  /** The lease is lost, so nothing that this run writes counts any more. */
  lost: boolean;
  /** Nothing was started, so another process may take the event. */
  released: boolean;
}

/** What a question returns if it has settled the whole event. The return value of a handler has no meaning. */
const FINAL: unique symbol = Symbol("final");

type Call = (context: HandlerContext) => unknown;
type Outcome =
  | { readonly ok: true; readonly final: boolean }
  | { readonly ok: false; readonly error: unknown };

/** Runs handlers under a lease, and decides what the result means for the event. */
export function createRunner(parts: RunnerParts): Runner {
  const { registry, flows, notices, logger, clock } = parts;

  async function runEvent(lease: Lease, progress: Progress): Promise<Ending> {
    const { delivery, verdict, only } = lease.data;
    const flow = flows[delivery.flow];
    if (flow === null)
      return unhandled(lease, `the ${delivery.flow} flow is off in the process that runs it`);
    if (isEntry(verdict)) return release(lease, flow.readAsNew(delivery, clock.now()));
    const reading = flow.read(delivery);
    const { event, verified } = reading;
    if (event === null) {
      return held(verified.verdict === "run" ? "malformed" : verified.verdict, verified.detail);
    }
    if (registry.isIgnored(event.event)) return { kind: "done" };
    const handlers = registry.handlersOf(event.event);
    if (handlers.length === 0) return unhandled(lease, `no handler is registered for ${event.event}`);
    if (only !== null && !handlers.some(({ name }) => only.includes(name))) {
      return unhandled(
        lease,
        `no handler of ${event.event} has the name that was replayed: ${only.join(", ")}`,
      );
    }

    if (parts.alreadyHandled !== undefined) {
      const { alreadyHandled } = parts;
      const asked = await runStep(lease, ALREADY_HANDLED, progress, async () => {
        const answer: unknown = await alreadyHandled(event);
        // A row, or undefined, would count as "no", and an event that was handled would run again.
        if (typeof answer !== "boolean")
          throw new TypeError(`alreadyHandled returned no boolean, but ${typeof answer}`);
        return answer ? FINAL : undefined;
      });
      if (asked === "final") return { kind: "done" };
      if (asked === "open") return endingOf(progress);
    }
    const calls: { readonly handler: Registered; readonly call: Call }[] = [];
    for (const handler of handlers) {
      if (only !== null && !only.includes(handler.name)) continue;
      const handle = handler.pick(event);
      if (handle !== null) calls.push({ handler, call: (context) => handle(event, context) });
    }
    for (const one of calls) {
      await runStep(lease, one.handler, progress, one.call);
      if (progress.lost || progress.released) break;
    }
    const ending = endingOf(progress);
    const registered = new Set(handlers.map(({ name }) => name));
    if (ending.kind === "held") warnOfMissing(lease, registered);
    if (ending.kind !== "done") return ending;
    const { givenUp, unfinished } = missingHandlers(
      lease.data,
      registered,
      new Set(calls.map(({ handler }) => handler.name)),
    );
    if (givenUp !== null) {
      warnOfMissing(lease, registered);
      return held(givenUp.reason, givenUp.error);
    }
    if (unfinished.length === 0) return ending;
    const detail = `it waits for a handler that ${event.event} no longer has: ${unfinished.join(", ")}`;
    return unhandled(lease, detail, registered);
  }

  /** Holds the event, since this process lacks a handler for it. */
  function unhandled(lease: Lease, detail: string, registered: ReadonlySet<string> = new Set()): Ending {
    warnOfMissing(lease, registered);
    return held("unhandled", detail);
  }

  /** If a handler that this process lacks was running when its own process died, a replay may repeat its effect. */
  function warnOfMissing({ data }: Lease, registered: ReadonlySet<string>): void {
    const mayHaveRun = ([name, { state }]: [string, Step]): boolean =>
      state === "started" && !registered.has(name);
    if (Object.entries(data.steps).some(mayHaveRun)) {
      notices.post({ type: "double-risk", why: "died-while-running", ...factsOf(data) });
    }
  }

  /** Replays an entry that never entered the table: reads it again, and enters it as if it had just arrived. */
  async function release(lease: Lease, { reading: { verified }, outside }: Verified): Promise<Ending> {
    if (isEntry(verified.verdict)) {
      const isLate = outside !== null && !lease.data.evenIfExpired;
      return held(
        verified.verdict as HeldReason,
        isLate ? `${verified.detail}; ${TOO_OLD}` : verified.detail,
      );
    }
    if (await enter(lease, verified)) return { kind: "done" };
    return held(lease.data.verdict as HeldReason, TOO_OLD);
  }

  /** Enters a released event into the table. False if it may have run and been forgotten, and nobody asked to run it anyway. */
  async function enter(lease: Lease, event: VerifiedEvent): Promise<boolean> {
    const { outcome } = await lease.accept(event);
    if (outcome !== "expired") return true;
    if (!lease.data.evenIfExpired) return false;
    notices.post({ type: "double-risk", why: "replayed-after-expiry", ...factsOf(lease.data) });
    await lease.accept({ ...event, fresh: true, evenIfExpired: true });
    return true;
  }

  /** Runs the onHeld handlers; for an ambiguous entry, `confirm` goes first. */
  async function tell(lease: Lease, progress: Progress): Promise<Ending> {
    if (lease.data.reason === "ambiguous" && flows.payments?.confirm !== undefined) {
      const released = await confirm(lease, flows.payments, progress);
      if (released || progress.retryInMs !== null || progress.lost || progress.released) {
        return released ? { kind: "done" } : endingOf(progress);
      }
    }
    const entry = heldEventOf(lease);
    for (const handler of registry.heldHandlers) {
      const step = { ...handler, name: TELL_PREFIX + handler.name };
      await runStep(lease, step, progress, (context) => handler.handle(entry, context));
      if (progress.lost || progress.released) break;
    }
    // The event is held already. A handler that has used up its attempts has posted a notice, and makes no second entry.
    const ending = endingOf(progress);
    return ending.kind === "retry" || ending.kind === "released" ? ending : { kind: "told" };
  }

  /** Asks `confirm` about an ambiguous entry. True when the entry is settled. */
  async function confirm(lease: Lease, flow: PaymentsFlow, progress: Progress): Promise<boolean> {
    const { delivery, detail, evenIfExpired } = lease.data;
    const ambiguity = flow.ambiguity(delivery, clock.now());
    if (ambiguity === null || (ambiguity.expired && !evenIfExpired)) return false;
    const { readings, complete, signedSince } = ambiguity;
    const asked = await runStep(lease, CONFIRM, progress, async () => {
      const question = { readings, complete, detail: detail ?? "", tenant: delivery.tenant };
      const answer = (await flow.confirm?.(question)) ?? "keep";
      if (answer === "keep") return undefined;
      if (answer === "discard") return FINAL;
      const { verified } = flow.released(answer, delivery, signedSince, clock.now()).reading;
      if (verified.verdict === "malformed") throw new Error(verified.detail ?? "not an event");
      return (await enter(lease, verified)) ? FINAL : undefined;
    });
    return asked === "final";
  }

  /**
   * Runs one handler, if it may run now. Its end is written together with the start of the next handler, or with the end of the
   * run, so that there is no gap in between. A call that returns `FINAL` has settled the whole event.
   */
  async function runStep(
    lease: Lease,
    handler: Registered,
    progress: Progress,
    call: Call,
  ): Promise<"done" | "final" | "open"> {
    const { name } = handler;
    const before = lease.data.steps[name];
    if (before?.state === "done") return "done";
    if (before?.state === "given-up") {
      progress.givenUp ??= { reason: before.reason ?? "exhausted", error: before.error ?? "" };
      return "open";
    }
    const attempts = before?.attempts ?? 0;
    if (before?.state === "started") {
      notices.post({ type: "double-risk", why: "died-while-running", ...factsOf(lease.data) });
      if (handler.onCrash === "hold" || attempts >= handler.maxAttempts) {
        const error = `the process died in attempt ${attempts}`;
        return giveUp(lease, handler, progress, { reason: "crashed", error, attempt: attempts, stack: null });
      }
    }
    const isEarly = before !== undefined && before.dueAt > lease.data.now;
    if (isEarly && !lease.data.force) {
      retryIn(progress, waitOf(before, lease, progress));
      return "open";
    }
    const attempt = attempts + 1;
    if (progress.unopened === name) progress.unopened = null;
    const isStarted = lease.data.started === name || (await start(lease, name, attempt, progress));
    const may = isStarted ? lease.mayCall() : "lost";
    if (may !== "yes") {
      // The handler was not called, so the next process to run the event starts it as if this had not happened.
      if (isStarted) progress.unwritten.push({ name, kind: "undone", before: before ?? null });
      if (may === "lost") return lose(progress);
      progress.released = true;
      return "open";
    }
    if (notices.observed) notices.post({ type: "started", ...factsOf(lease.data), handler: name, attempt });
    const startedAt = clock.now();
    lease.called();
    const outcome = await callInTime(lease, handler, attempt, call);
    if (outcome.ok) {
      if (outcome.final) return "final";
      progress.unwritten.push({ name, kind: "done", attempt });
      if (notices.observed) {
        const durationMs = clock.now() - startedAt;
        progress.unnoticed.push({ type: "done", ...factsOf(lease.data), handler: name, attempt, durationMs });
      }
      return "done";
    }
    const retryAfter = retryAfterOf(outcome.error);
    const thrown = factsOfThrown(outcome.error);
    const { error } = thrown;
    // Where a handler asks to be tried again later, nothing went wrong.
    const stack = retryAfter === null ? thrown.stack : null;
    if (isReject(outcome.error))
      return giveUp(lease, handler, progress, { reason: "rejected", error, attempt, stack });
    // Anybody may have sent the copy that asked for this early attempt. So the attempt is not counted, and does not move the next one.
    if (!isEarly && attempt >= handler.maxAttempts)
      return giveUp(lease, handler, progress, { reason: "exhausted", error, attempt, stack });
    const delayMs = isEarly ? waitOf(before, lease, progress) : (retryAfter ?? backoffOf(handler, attempt));
    progress.unwritten.push(
      isEarly
        ? { name, kind: "undone", before: { ...before, error } }
        : { name, kind: "failed", attempt, delayMs, error },
    );
    const facts = { ...factsOf(lease.data), handler: name, attempt };
    progress.unnoticed.push({ type: "retry", ...facts, delayMs, error, stack });
    retryIn(progress, delayMs);
    return "open";
  }

  /** Writes that a handler starts, together with the ends of those before it. False if the lease is lost. */
  async function start(lease: Lease, name: string, attempt: number, progress: Progress): Promise<boolean> {
    const changes = progress.unwritten.splice(0);
    if (lease.mayCall() !== "yes") {
      progress.unwritten.push(...changes);
      // Nothing more is started. The end of the run tells why.
      return lease.mayCall() === "hand-back";
    }
    if (!(await lease.write([...changes, { name, kind: "started", attempt }]))) return false;
    for (const notice of progress.unnoticed.splice(0)) notices.post(notice);
    return true;
  }

  /**
   * The time until a step's next attempt. The store's clock gave it when the run began, and this process measures the time since
   * then. Not by the wall clock alone, which may be set back by an hour in the meantime.
   */
  function waitOf({ dueAt }: Step, { data }: Lease, { since }: Progress): number {
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
   * longer used.
   */
  function callInTime(lease: Lease, handler: Registered, attempt: number, call: Call): Promise<Outcome> {
    const cancellation = lease.cancellation.derive();
    return new Promise((resolve) => {
      const cancelTimer = clock.after(handler.timeoutMs, () => {
        const error = new Error(`timed out after ${handler.timeoutMs} ms`);
        notices.post({ type: "double-risk", why: "timeout", ...factsOf(lease.data) });
        cancellation.cancel(error);
        resolve({ ok: false, error });
      });
      const settle = (outcome: Outcome): void => {
        cancelTimer();
        resolve(outcome);
      };
      const fail = (error: unknown): void => settle({ ok: false, error });
      try {
        const context = contextOf(lease, handler, attempt, cancellation);
        const answer = call(context);
        Promise.resolve(answer)
          .then((value) => {
            const ended = (): void => settle({ ok: true, final: value === FINAL });
            // A transaction that the handler did not wait for can still fail. Then the handler counts as failed, too.
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
    attempt: number,
    cancellation: Cancellation,
  ): RunContext {
    const skipped = (effect: string): void =>
      notices.post({ type: "effect-skipped", ...factsOf(lease.data), handler: name, attempt, effect });
    const given = { effects: parts.effects, now: clock.now(), skipped };
    return new RunContext(lease, name, attempt, cancellation, logger, given);
  }

  function endOf(lease: Lease, ending: Ending, progress: Progress): RunEnd {
    const { unwritten, unnoticed, unopened } = progress;
    if (unopened !== null) {
      unwritten.push({ name: unopened, kind: "undone", before: lease.data.steps[unopened] ?? null });
    }
    const written = (): void => {
      for (const notice of unnoticed) notices.post(notice);
      if (ending.kind === "done" && notices.observed)
        notices.post({ type: "finished", ...factsOf(lease.data) });
      if (ending.kind === "held")
        notices.post({ type: "held", ...factsOf(lease.data), reason: ending.reason, detail: ending.detail });
    };
    if (ending.kind !== "held") return { ending, changes: unwritten, written };
    const toConfirm = ending.reason === "ambiguous" && flows.payments?.confirm !== undefined;
    return {
      ending: { ...ending, tell: toConfirm || registry.heldHandlers.length > 0 },
      changes: unwritten,
      written,
    };
  }

  /**
   * The end of a run after an error that no handler threw: reading or releasing the event failed. Nothing is known about the
   * event, so it is tried again.
   */
  function failed(error: unknown): Ending {
    notices.post(inboxError("run", error));
    return { kind: "retry", delayMs: defaultBackoffMs(3) };
  }

  /** The step that a run starts with: the one that {@link runEvent} or {@link tell} would start first. */
  function firstOf(data: LeaseData): Registered | undefined {
    const { delivery, verdict, only } = data;
    if (data.mode === "tell") {
      if (data.reason === "ambiguous" && flows.payments?.confirm !== undefined) return undefined;
      const first = registry.heldHandlers.find(({ name }) => !isThrough(data.steps[TELL_PREFIX + name]));
      return first === undefined ? undefined : { ...first, name: TELL_PREFIX + first.name };
    }
    const flow = flows[delivery.flow];
    if (flow === null || isEntry(verdict)) return undefined;
    const { event } = flow.read(delivery);
    if (event === null || registry.isIgnored(event.event)) return undefined;
    const handlers = registry.handlersOf(event.event);
    if (parts.alreadyHandled !== undefined && !isThrough(data.steps[ALREADY_HANDLED.name])) {
      return handlers.length === 0 ? undefined : ALREADY_HANDLED;
    }
    return handlers.find(
      (handler) =>
        (only === null || only.includes(handler.name)) &&
        !isThrough(data.steps[handler.name]) &&
        handler.pick(event) !== null,
    );
  }

  return {
    async run(lease) {
      const progress = newProgress(new Stopwatch(clock), lease.data.started);
      const running = lease.data.mode === "tell" ? tell(lease, progress) : runEvent(lease, progress);
      return endOf(lease, await running.catch(failed), progress);
    },
    firstStep(data) {
      const first = firstOf(data);
      if (first === undefined) return null;
      const before = data.steps[first.name];
      // The start of a handler that must not run twice is written by itself. If the process dies before that, the handler was
      // never called.
      if (first.onCrash === "hold" || first.maxAttempts === 1) return null;
      // If its process died in the last run, or the step is not due yet, the run itself decides.
      return before === undefined || (before.state === "failed" && before.dueAt <= data.now)
        ? first.name
        : null;
    },
    notify: (notice) => notices.post(notice),
  };
}

function isThrough(step: Step | undefined): boolean {
  return step?.state === "done" || step?.state === "given-up";
}

function newProgress(since: Stopwatch, unopened: string | null): Progress {
  return {
    unwritten: [],
    unnoticed: [],
    unopened,
    since,
    retryInMs: null,
    givenUp: null,
    lost: false,
    released: false,
  };
}

/** The event is held only if no handler has attempts left. One that has failed for good does not stop the others. */
function endingOf({ retryInMs, givenUp, lost, released }: Progress): Ending {
  if (released) return { kind: "released" };
  if (lost) return { kind: "retry", delayMs: 0 };
  if (retryInMs !== null) return { kind: "retry", delayMs: retryInMs };
  return givenUp === null ? { kind: "done" } : held(givenUp.reason, givenUp.error);
}

function held(reason: HeldReason, detail: string | null): Ending {
  return { kind: "held", reason, detail, tell: false };
}

function lose(progress: Progress): "open" {
  progress.lost = true;
  return "open";
}

function retryIn(progress: Progress, ms: number): void {
  progress.retryInMs = Math.min(progress.retryInMs ?? ms, ms);
}

function backoffOf(handler: Registered, attempt: number): number {
  let given: unknown;
  try {
    given = handler.backoffMs(attempt);
  } catch {
    // A mistake in the merchant's own function must not look like a handler that died.
  }
  return delayOf(given) ?? defaultBackoffMs(attempt);
}

function heldEventOf({ data }: Lease): HeldEvent {
  const { reason, detail, delivery } = data;
  return { ...factsOf(data), reason: reason ?? "malformed", detail, rawBody: delivery.rawBody };
}
