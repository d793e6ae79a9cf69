import { contentsWithFlows } from "../flows/contents.ts";
import { type AuthenticReading, type Flow, withFreshness } from "../flows/flow.ts";
import type { HeldEvent } from "../handlers/handler.ts";
import { findMissingHandlers, findMissingOnHeld } from "../handlers/missing-handlers.ts";
import type { HandledEvent, HandlerSettings, Registry } from "../handlers/registry.ts";
import type { RunEnd, RunHandle, Runner } from "../inbox/contract/inbox.ts";
import type { StoredDelivery, VerifiedEvent } from "../inbox/record/event.ts";
import { type HandlerState, ON_HELD_PREFIX } from "../inbox/record/handler-state.ts";
import { factsOf, type RunInput } from "../inbox/record/run-input.ts";
import type { RunOutcome } from "../inbox/record/run-outcome.ts";
import { failedRunDelayMs } from "../inbox/record/schedule.ts";
import { inboxErrorNotice } from "../notices/notice.ts";
import type { SourceEvent } from "../protocol/events.ts";
import { type HeldReason, isOutsideTable, needsInvestigation } from "../protocol/held-reasons.ts";
import { Stopwatch } from "../time/clock.ts";
import { createRunHandler, type HandlerCall, type HandlerCallDependencies } from "./handler-call.ts";
import type { EndedFacts } from "./instrumentation.ts";
import { heldOutcome, newRunProgress, outcomeOf, type RunProgress } from "./run-progress.ts";

export interface RunnerDependencies extends HandlerCallDependencies {
  readonly registry: Registry;
  /** The flows of this process, by their names. */
  readonly flows: ReadonlyMap<string, Flow>;
}

/** The rules by which an onHeld handler that this process lacks is retried. */
const MISSING_HANDLER_SETTINGS: Omit<HandlerSettings, "name"> = {
  timeoutMs: 60_000,
  maxAttempts: 25,
  backoffMs: null,
  onCrash: "rerun",
  onTimeout: "wait",
  callLimit: null,
};

/** The detail of an event that may have run before, because its record would have expired by now. */
const TOO_OLD_DETAIL =
  "signed so long ago that it may have run and been forgotten: only a replay with evenIfExpired runs it";

/**
 * The detail of an event that claimed no reference when it was accepted, and whose reference another event has when it is to run.
 */
const REFERENCE_REUSED_DETAIL = "another payTxnId has a SUCCESS for this reference by now";

/** An event whose subject is busy is tried again after this time. */
const BUSY_SUBJECT_DELAY_MS = 500;

/** The detail of an event whose place in the order of its subject is not known. */
const UNORDERED_DETAILS = {
  equal:
    "another event of its subject was signed at the same time: nobody can say which of them is the latest",
  forgotten:
    "a later event of its subject may have run and been forgotten: only a replay with evenIfExpired runs it",
};

/** Runs handlers under a lease, and decides what their results mean for the event. */
export function createRunner(dependencies: RunnerDependencies): Runner {
  const { registry, flows, notices, clock, instrumentation } = dependencies;
  const runHandler = createRunHandler(dependencies);

  /** The inbox begins no event of a flow that this process does not have. */
  function flowOf({ flow }: StoredDelivery): Flow {
    const knownFlow = flows.get(flow);
    if (knownFlow === undefined) throw new Error(`this process has no flow ${flow}`);
    return knownFlow;
  }

  async function runEvent(run: RunHandle, progress: RunProgress): Promise<RunOutcome> {
    const { delivery, verdict, onlyHandlers } = run.input;
    const flow = flowOf(delivery);
    if (isOutsideTable(verdict)) {
      return enterTable(run, withFreshness(flow.read(delivery), clock.now(), flow.windowMs));
    }
    const reading = flow.read(delivery);
    const { event, verified } = reading;
    if (event === null) {
      return heldOutcome(verified.verdict === "run" ? "malformed" : verified.verdict, verified.detail);
    }
    const drift = flow.source === undefined ? null : driftOf(verified, run.input);
    if (drift !== null) return heldOutcome("mismatch", drift);
    const subjectOutcome = verified.subject === undefined ? null : await outcomeBySubject(run, verified);
    if (subjectOutcome !== null) return subjectOutcome;
    if (registry.isIgnored(delivery.flow, event.event)) return endIgnored(run, event);
    const handlers = registry.handlersOf(delivery.flow, event.event);
    const isUnhandled = handlers.length === 0 && delivery.mayBeUnhandled === true;
    if (isUnhandled && flow.source?.unhandled === "acknowledge") return endIgnored(run, event);
    if (handlers.length === 0) {
      return holdUncalled(run, "unhandled", `no handler is registered for ${event.event}`);
    }
    if (onlyHandlers !== null && !handlers.some(({ name }) => onlyHandlers.includes(name))) {
      const names = onlyHandlers.join(", ");
      return holdUncalled(
        run,
        "unhandled",
        `no handler of ${event.event} has the name that was replayed: ${names}`,
      );
    }

    if (verified.referenceKey !== null && !run.input.claims.includes(verified.referenceKey)) {
      const isClaimed = await run.claimReference(verified);
      // The entry was held for this reason. So a person who replays it has decided that it runs all the same.
      if (!isClaimed && run.input.reason !== "reference-reused")
        return heldOutcome("reference-reused", REFERENCE_REUSED_DETAIL);
    }
    const schemaCheck = await checkSchema(flow, event);
    if (schemaCheck.kind === "unfit") return holdUncalled(run, "schema", schemaCheck.detail);
    const calls: { readonly handler: HandlerSettings; readonly call: HandlerCall }[] = [];
    for (const handler of handlers) {
      if (onlyHandlers !== null && !onlyHandlers.includes(handler.name)) continue;
      const handle = handler.pick(event);
      if (handle === null) continue;
      const call: HandlerCall = (context) => {
        if (schemaCheck.kind === "failed") throw schemaCheck.error;
        return handle(schemaCheck.event as never, context);
      };
      calls.push({ handler, call });
    }
    for (const handlerCall of calls) {
      await runHandler(run, handlerCall.handler, progress, handlerCall.call);
      if (progress.isLeaseLost || progress.isHandedBack) break;
    }
    const outcome = outcomeOf(progress);
    const registered = new Set(handlers.map(({ name }) => name));
    if (outcome.kind === "held") warnOfMissing(run, registered);
    if (outcome.kind !== "done") return outcome;
    const { givenUp, unfinished } = findMissingHandlers(
      run.input,
      registered,
      new Set(calls.map(({ handler }) => handler.name)),
    );
    if (givenUp !== null) {
      warnOfMissing(run, registered);
      return heldOutcome(givenUp.reason, givenUp.error);
    }
    if (unfinished.length === 0) return outcome;
    const detail = `it waits for a handler that ${event.event} does not have in the process that ran it: ${unfinished.join(", ")}`;
    return holdUnhandled(run, detail, registered);
  }

  /** The end of a run whose event is not the latest of its subject, or must wait for another event of it. Null if it may run. */
  async function outcomeBySubject(run: RunHandle, verified: VerifiedEvent): Promise<RunOutcome | null> {
    const answer = await run.takeSubject(verified);
    switch (answer) {
      case "acquired":
        return null;
      case "busy":
        return { kind: "handed-back", delayMs: BUSY_SUBJECT_DELAY_MS };
      case "overtaken":
        return { kind: "stale" };
      case "equal":
      case "forgotten":
        return heldOutcome("conflict", UNORDERED_DETAILS[answer]);
    }
  }

  /** Checks the event against its schema. If the schema itself fails, each handler's attempt fails with its error. */
  async function checkSchema({ source }: Flow, event: HandledEvent): Promise<SchemaCheck> {
    if (source === undefined) return { kind: "fits", event };
    try {
      const result = await source.check(event as SourceEvent);
      if ("event" in result) return { kind: "fits", event: result.event };
      return { kind: "unfit", detail: `its data does not fit the schema at: ${result.issues}` };
    } catch (error) {
      return { kind: "failed", error };
    }
  }

  /** Ends an event that is ignored here, unless it waits for a handler of another process, or of an earlier version. */
  function endIgnored(run: RunHandle, { event }: HandledEvent): RunOutcome {
    const { givenUp, unfinished } = findMissingHandlers(run.input, new Set(), new Set());
    if (givenUp !== null) {
      warnOfMissing(run, new Set());
      return heldOutcome(givenUp.reason, givenUp.error);
    }
    if (unfinished.length === 0) return { kind: "done" };
    return holdUncalled(
      run,
      "unhandled",
      `${event} is ignored by the process that ran it, but it waits for a handler: ${unfinished.join(", ")}`,
    );
  }

  /** Holds the event, because this process lacks a handler for it. */
  function holdUnhandled(run: RunHandle, detail: string, registered: ReadonlySet<string>): RunOutcome {
    warnOfMissing(run, registered);
    return heldOutcome("unhandled", detail);
  }

  /**
   * The end of a run that has called no handler. If the entry was held because it is not known what is true, it stays held for that reason.
   */
  function holdUncalled(run: RunHandle, reason: "unhandled" | "schema", detail: string): RunOutcome {
    if (reason === "unhandled") warnOfMissing(run, new Set());
    const heldReason = run.input.reason;
    return heldOutcome(heldReason !== null && needsInvestigation(heldReason) ? heldReason : reason, detail);
  }

  /** If a handler that this process lacks was running when its own process died, a replay may repeat its effect. */
  function warnOfMissing({ input }: RunHandle, registered: ReadonlySet<string>): void {
    const mayHaveRun = ([name, { state }]: [string, HandlerState]): boolean =>
      state === "started" && !registered.has(name);
    if (Object.entries(input.handlerStates).some(mayHaveRun)) {
      notices.post({ type: "double-risk", why: "died-while-running", ...factsOf(input) });
    }
  }

  /** Replays an entry that never entered the table: reads it again, and enters it as if it had just arrived. */
  async function enterTable(
    run: RunHandle,
    { reading: { verified } }: AuthenticReading,
  ): Promise<RunOutcome> {
    const { verdict, evenIfExpired } = run.input;
    if (isOutsideTable(verified.verdict)) return heldOutcome(verified.verdict as HeldReason, verified.detail);
    const { outcome } = await run.accept(verified);
    if (outcome === "expired") {
      if (!evenIfExpired) return heldOutcome(verdict as HeldReason, TOO_OLD_DETAIL);
      notices.post({ type: "double-risk", why: "replayed-after-expiry", ...factsOf(run.input) });
      await run.accept({ ...verified, isWithinWindow: true, evenIfExpired: true });
    }
    return { kind: "done" };
  }

  /** Runs the onHeld handlers. */
  async function callOnHeld(run: RunHandle, progress: RunProgress): Promise<RunOutcome> {
    const heldEvent = heldEventOf(run, flows);
    for (const handler of registry.heldHandlers) {
      const settings = { ...handler, name: ON_HELD_PREFIX + handler.name };
      await runHandler(run, settings, progress, (context) => handler.handle(heldEvent, context));
      if (progress.isLeaseLost || progress.isHandedBack) break;
    }
    // Another process has these handlers, or an earlier version had them. So each counts as failed, and is tried again later.
    for (const name of findMissingOnHeld(run.input, onHeldNames())) {
      if (progress.isLeaseLost || progress.isHandedBack) break;
      await runHandler(run, { ...MISSING_HANDLER_SETTINGS, name }, progress, () => {
        throw new Error("the process that was to call it has no such handler");
      });
    }
    // The event is held already. If a handler has used up its attempts, there was a notice, and no second entry is made.
    const outcome = outcomeOf(progress);
    return outcome.kind === "retry" || outcome.kind === "handed-back" ? outcome : { kind: "stays-held" };
  }

  function runEndOf(run: RunHandle, outcome: RunOutcome, progress: RunProgress): RunEnd {
    const { unwrittenChanges, unsentNotices, startedAhead } = progress;
    if (startedAhead !== null) {
      unwrittenChanges.push({
        name: startedAhead,
        kind: "undone",
        before: run.input.handlerStates[startedAhead] ?? null,
      });
    }
    const postEndNotices = (): void => {
      for (const notice of unsentNotices) notices.post(notice);
      if (outcome.kind === "done" && notices.isObserved)
        notices.post({ type: "finished", ...factsOf(run.input) });
      if (outcome.kind === "stale") {
        notices.post({ type: "stale", ...factsOf(run.input) });
        instrumentation?.onEventEnd(eventEndOf(run.input, "stale", null));
      }
      if (outcome.kind === "held") {
        const { reason, detail } = outcome;
        notices.post({ type: "held", ...factsOf(run.input), reason, detail });
        instrumentation?.onEventEnd(eventEndOf(run.input, "held", reason));
      }
    };
    if (outcome.kind !== "held") return { outcome, changes: unwrittenChanges, onWritten: postEndNotices };
    return {
      outcome: { ...outcome, onHeld: onHeldNames() },
      changes: unwrittenChanges,
      onWritten: postEndNotices,
    };
  }

  /** The names of the onHeld handlers, as a record has them. */
  function onHeldNames(): readonly string[] {
    return registry.heldHandlers.map(({ name }) => ON_HELD_PREFIX + name);
  }

  /** The end of a run after an error that no handler threw: reading or releasing the event failed. The event is tried again. */
  function outcomeAfterError({ input }: RunHandle, error: unknown): RunOutcome {
    notices.post(inboxErrorNotice("run", error));
    return { kind: "retry", delayMs: failedRunDelayMs(input.lastDelayMs) };
  }

  /** The handler that a run calls first, in {@link runEvent} or {@link callOnHeld}. */
  function findFirstHandler(input: RunInput): HandlerSettings | undefined {
    const { delivery, verdict, onlyHandlers } = input;
    if (input.mode === "onHeld") {
      const handler = registry.heldHandlers.find(
        ({ name }) => !isFinished(input.handlerStates[ON_HELD_PREFIX + name]),
      );
      return handler === undefined ? undefined : { ...handler, name: ON_HELD_PREFIX + handler.name };
    }
    if (isOutsideTable(verdict)) return undefined;
    const { event } = flowOf(delivery).read(delivery);
    if (event === null || registry.isIgnored(delivery.flow, event.event)) return undefined;
    const handlers = registry.handlersOf(delivery.flow, event.event);
    return handlers.find(
      (handler) =>
        (onlyHandlers === null || onlyHandlers.includes(handler.name)) &&
        !isFinished(input.handlerStates[handler.name]) &&
        handler.pick(event) !== null,
    );
  }

  return {
    async run(run) {
      const progress = newRunProgress(new Stopwatch(clock), run.input.startedHandler);
      const running = run.input.mode === "onHeld" ? callOnHeld(run, progress) : runEvent(run, progress);
      return runEndOf(run, await running.catch((error: unknown) => outcomeAfterError(run, error)), progress);
    },
    firstHandler(input) {
      const handler = findFirstHandler(input);
      if (handler === undefined) return null;
      const state = input.handlerStates[handler.name];
      // The start of a handler that must not run twice is a write of its own: if the process dies before that write, the handler
      // was never called. A handler with a limit of its own may have to wait before its start.
      if (handler.onCrash === "hold" || handler.maxAttempts === 1 || handler.callLimit !== null) return null;
      // If its process died in the last run, or the handler is not due yet, the run itself decides.
      return state === undefined || (state.state === "failed" && state.dueAt <= input.now)
        ? handler.name
        : null;
    },
    handlersOf(input) {
      const { mode, verdict, name, status, onlyHandlers, delivery } = input;
      if (mode === "onHeld") return onHeldNames();
      if (isOutsideTable(verdict)) return [];
      const names = registry.namesFor(delivery.flow, name, status);
      return onlyHandlers === null ? names : names.filter((handler) => onlyHandlers.includes(handler));
    },
    maxAttempts(flow, event, handler) {
      if (!handler.startsWith(ON_HELD_PREFIX)) return registry.maxAttemptsOf(flow, event, handler);
      const name = handler.slice(ON_HELD_PREFIX.length);
      return registry.heldHandlers.find((heldHandler) => heldHandler.name === name)?.maxAttempts ?? 0;
    },
    hasFlow: (flow) => flows.has(flow),
    notify: (notice) => notices.post(notice),
  };
}

/** A schema's verdict on an event's data. */
type SchemaCheck =
  | { readonly kind: "fits"; readonly event: HandledEvent }
  | { readonly kind: "unfit"; readonly detail: string }
  | { readonly kind: "failed"; readonly error: unknown };

/** How an event differs from the accepted event, if `read` of its source has changed; otherwise null. */
function driftOf(verified: VerifiedEvent, { id, name, status, delivery }: RunInput): string | null {
  const differs = [
    verified.id === id ? "" : "id",
    verified.name === name ? "" : "name",
    verified.status === status ? "" : "status",
    verified.delivery.tenant === delivery.tenant ? "" : "tenant",
  ].filter((field) => field !== "");
  return differs.length === 0 ? null : `read gives another ${differs.join(", ")} than when it was accepted`;
}

function isFinished(before: HandlerState | undefined): boolean {
  return before?.state === "done" || before?.state === "given-up";
}

function eventEndOf(input: RunInput, outcome: EndedFacts["outcome"], reason: HeldReason | null): EndedFacts {
  const { replays, trace } = input;
  return { ...factsOf(input), outcome, reason, replays, trace };
}

function heldEventOf({ input }: RunHandle, flows: RunnerDependencies["flows"]): HeldEvent {
  const { reason, detail, delivery } = input;
  return {
    ...factsOf(input),
    reason: reason ?? "malformed",
    detail,
    contents: contentsWithFlows(flows, delivery),
  };
}
