import type { Clock } from "./clock.ts";
import { RunContext } from "./context.ts";
import type { AnyEvent } from "./events.ts";
import type { Flow, Verified } from "./flows/flow.ts";
import type { PaymentsFlow } from "./flows/payments.ts";
import { defaultBackoffMs, type HandlerContext, type HeldEvent, isReject, retryAfterOf } from "./handlers.ts";
import {
  type Ending,
  factsOf,
  type GivenUp,
  type HeldReason,
  isEntry,
  type Lease,
  type LeaseData,
  type RunEnd,
  type Runner,
  type Step,
  type StepChange,
  TELL_PREFIX,
  type VerifiedEvent,
} from "./inbox/inbox.ts";
import { type Happening, inboxError, type Logger, type Notice, type NoticeBoard } from "./notices.ts";
import type { Registered, Registry } from "./registry.ts";
import { factsOfThrown } from "./thrown.ts";

/** What the runner takes from the receiver. */
export interface RunnerParts {
  readonly registry: Registry;
  readonly flows: { readonly payments: PaymentsFlow | null; readonly connect: Flow | null };
  readonly notices: NoticeBoard;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly alreadyHandled: ((event: AnyEvent) => boolean | Promise<boolean>) | undefined;
}

/** A question that is asked under a lease and retried like a handler. */
const QUESTION: Omit<Registered, "name"> = {
  timeoutMs: 60_000,
  maxTries: 25,
  backoffMs: defaultBackoffMs,
  onCrash: "rerun",
};
const ALREADY_HANDLED: Registered = { ...QUESTION, name: "?alreadyHandled" };
const CONFIRM: Registered = { ...QUESTION, name: `${TELL_PREFIX}?confirm` };

/** Nobody can say any more whether it ran: the record would have expired. */
const TOO_OLD =
  "signed so long ago that it may have run and been forgotten: only a replay with evenIfExpired runs it";

/** Where the steps of one run have led. */
interface Progress {
  /** How handlers stand that no write has told of yet. */
  readonly unwritten: StepChange[];
  /** What is to be noticed once that is written. */
  readonly unnoticed: Happening[];
  /** The step whose start was written with the begin, until the run gets to it. */
  unopened: string | null;
  /** When the run began, by this process's clock. */
  readonly begunAt: number;
  /** When the next try is due, in ms from now; null when none is. */
  retryInMs: number | null;
  givenUp: { readonly reason: GivenUp; readonly error: string } | null;
  /** The lease is lost: nothing that is written counts any more. */
  lost: boolean;
  /** Another worker may have it, since nothing was started. */
  released: boolean;
}

/** What a question answers that has settled the whole event; whatever a handler returns says nothing. */
const FINAL: unique symbol = Symbol("final");

type Call = (context: HandlerContext) => unknown;
type Outcome =
  | { readonly ok: true; readonly final: boolean }
  | { readonly ok: false; readonly error: unknown };

/** Runs handlers under a lease, and decides how that ended. */
export function createRunner(parts: RunnerParts): Runner {
  const { registry, flows, notices, logger, clock } = parts;

  async function runEvent(lease: Lease, progress: Progress): Promise<Ending> {
    const { delivery, verdict, only } = lease.data;
    const flow = flows[delivery.flow];
    if (flow === null)
      return held("unhandled", `the ${delivery.flow} flow is off in the process that runs it`);
    if (isEntry(verdict)) return release(lease, flow.readAsNew(delivery, clock.now()));
    const reading = flow.read(delivery);
    const { event, verified } = reading;
    if (event === null) {
      return held(verified.verdict === "run" ? "malformed" : verified.verdict, verified.detail);
    }
    if (registry.isIgnored(event.event)) return { kind: "done" };
    const handlers = registry.handlersOf(event.event);
    if (handlers.length === 0) return held("unhandled", `no handler is registered for ${event.event}`);
    if (only !== null && !handlers.some(({ name }) => only.includes(name))) {
      return held(
        "unhandled",
        `no handler of ${event.event} has the name that was replayed: ${only.join(", ")}`,
      );
    }

    if (parts.alreadyHandled !== undefined) {
      const { alreadyHandled } = parts;
      const asked = await runStep(lease, ALREADY_HANDLED, progress, async () =>
        (await alreadyHandled(event)) === true ? FINAL : undefined,
      );
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
    return endingOf(progress);
  }

  /** A replay of what never met the table: it is read again, and enters the table as if it had just arrived. */
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

  /** Enters a released event into the table. False: it may have run and been forgotten, and nobody said to run it. */
  async function enter(lease: Lease, event: VerifiedEvent): Promise<boolean> {
    const { outcome } = await lease.accept(event);
    if (outcome !== "expired") return true;
    if (!lease.data.evenIfExpired) return false;
    notices.post({ type: "double-risk", why: "replayed-after-expiry", ...factsOf(lease.data) });
    await lease.accept({ ...event, fresh: true, evenIfExpired: true });
    return true;
  }

  /** The onHeld handlers, and for an ambiguous entry `confirm` before them. */
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
    // It is held already: a handler that used up its tries has been noticed, and makes no second entry.
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
   * One handler, as far as it may run now. How it ended is written with the start of the next one, or with the end of the
   * run: nothing lies in between. A call that answers `FINAL` has settled the whole event.
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
    const tries = before?.tries ?? 0;
    if (before?.state === "started") {
      notices.post({ type: "double-risk", why: "died-while-running", ...factsOf(lease.data) });
      if (handler.onCrash === "hold" || tries >= handler.maxTries) {
        const error = `the process died in try ${tries}`;
        return giveUp(lease, handler, progress, { reason: "crashed", error, attempt: tries, stack: null });
      }
    }
    const isEarly = before !== undefined && before.dueAt > lease.data.now;
    if (isEarly && !lease.data.force) {
      retryIn(progress, waitOf(before, lease, progress));
      return "open";
    }
    const attempt = tries + 1;
    if (progress.unopened === name) progress.unopened = null;
    const isStarted = lease.data.started === name || (await start(lease, name, attempt, progress));
    const may = isStarted ? lease.mayCall() : "lost";
    if (may !== "yes") {
      // It was not called: whoever runs the event next tries it as if this had not been.
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
    const { error, stack } = factsOfThrown(outcome.error);
    if (isReject(outcome.error))
      return giveUp(lease, handler, progress, { reason: "rejected", error, attempt, stack });
    // Anybody may have sent the copy that asked for an early try: it uses up none, and does not move the next one.
    if (!isEarly && attempt >= handler.maxTries)
      return giveUp(lease, handler, progress, { reason: "exhausted", error, attempt, stack });
    const delayMs = isEarly
      ? waitOf(before, lease, progress)
      : (retryAfterOf(outcome.error) ?? backoffOf(handler, attempt));
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

  /** Writes that a handler starts, and with it how those before it ended. False: the lease is lost. */
  async function start(lease: Lease, name: string, attempt: number, progress: Progress): Promise<boolean> {
    const changes = progress.unwritten.splice(0);
    if (lease.mayCall() !== "yes") {
      progress.unwritten.push(...changes);
      // Nothing is started any more: the run's end tells why.
      return lease.mayCall() === "hand-back";
    }
    if (!(await lease.write([...changes, { name, kind: "started", attempt }]))) return false;
    for (const notice of progress.unnoticed.splice(0)) notices.post(notice);
    return true;
  }

  /** How long a step's next try is away: the store's clock has told at the begin, and this one how long ago that was. */
  function waitOf({ dueAt }: Step, { data }: Lease, { begunAt }: Progress): number {
    return Math.max(0, dueAt - data.now - (clock.now() - begunAt));
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

  /** Calls the handler with a signal and a limit of time. A handler that ignores both goes on, unheard. */
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
        const answer = call(new RunContext(lease, handler.name, attempt, cancellation, logger));
        Promise.resolve(answer).then((value) => settle({ ok: true, final: value === FINAL }), fail);
      } catch (error) {
        fail(error);
      }
    });
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

  /** Not a handler's error: those are outcomes. Reading or releasing failed, so nothing is known: try again. */
  function failed(error: unknown): Ending {
    notices.post(inboxError("run", error));
    return { kind: "retry", delayMs: defaultBackoffMs(3) };
  }

  /** What a run begins with; the same that {@link runEvent} and {@link tell} would start first. */
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
      const progress = newProgress(clock.now(), lease.data.started);
      const running = lease.data.mode === "tell" ? tell(lease, progress) : runEvent(lease, progress);
      return endOf(lease, await running.catch(failed), progress);
    },
    firstStep(data) {
      const first = firstOf(data);
      if (first === undefined) return null;
      const before = data.steps[first.name];
      // One that must not run twice has a start of its own: what dies before that was never called.
      if (first.onCrash === "hold" || first.maxTries === 1) return null;
      // What died in its last run, or is not due yet, is for the run itself to judge.
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

function newProgress(begunAt: number, unopened: string | null): Progress {
  return {
    unwritten: [],
    unnoticed: [],
    unopened,
    begunAt,
    retryInMs: null,
    givenUp: null,
    lost: false,
    released: false,
  };
}

/** Held only when no handler has tries left: one that failed for good does not stop the others' retries. */
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
  const ms = handler.backoffMs(attempt);
  return Number.isFinite(ms) && ms >= 0 ? ms : defaultBackoffMs(attempt);
}

function heldEventOf({ data }: Lease): HeldEvent {
  const { reason, detail, delivery } = data;
  return { ...factsOf(data), reason: reason ?? "malformed", detail, rawBody: delivery.rawBody };
}
