import { isPayhooksError } from "../../protocol/errors.ts";
import { emptyContext } from "../../time/async-context.ts";
import type { AcceptOptions } from "../contract/inbox.ts";
import type { AcceptResult, RunReport, VerifiedEvent } from "../record/event.ts";
import type { Lane } from "../record/lane.ts";
import type { Dispatcher } from "../run/dispatcher.ts";
import type { Run } from "../run/run.ts";
import type { Runs } from "../run/runs.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import type { ChangeResult } from "../write/records.ts";
import { type AcceptAnswer, acceptChange, hasWorkLeft, type KnownFacts, type Need } from "./accept-event.ts";
import { HeldQuota } from "./held-quota.ts";

const DEFAULT_DEADLINE_MS = 2_000;
const NO_KNOWN_FACTS: KnownFacts = { claims: new Map(), mayBeHeld: false };

/** How to accept an event, and where it waits if it is new. */
type LaneOptions = AcceptOptions & { readonly lane: Lane };

/** An event that the store has taken, or knew already. */
interface StoreResult {
  readonly answer: Extract<AcceptAnswer, { kind: "accepted" }>;
  /** The run that the same write began; null if it began none. */
  readonly run: Run | null;
  readonly knownFacts: KnownFacts;
  /** The version of the event's record; null if there is no record. */
  readonly version: string | null;
}

/** Called with the reason when the store did not answer, or did not take the event. */
type OnFailure = (cause: unknown) => void;

/** Accepts events, and begins them in the same write where there is room. */
export class Acceptor {
  readonly #core: InboxCore;
  readonly #runs: Runs;
  readonly #dispatcher: Dispatcher;
  readonly #heldQuota: HeldQuota;
  #underWayCount = 0;
  #restWaiters: (() => void)[] = [];

  constructor(core: InboxCore, runs: Runs, dispatcher: Dispatcher) {
    this.#core = core;
    this.#runs = runs;
    this.#dispatcher = dispatcher;
    this.#heldQuota = new HeldQuota(core);
  }

  async accept(event: VerifiedEvent, acceptOptions: AcceptOptions): Promise<AcceptResult> {
    this.#underWayCount++;
    const { crowds } = this.#runs;
    const options = { ...acceptOptions, lane: crowds.assignLane(event) };
    const uncountWaiting = crowds.countWaiting(event);
    const onFailure: OnFailure = (cause) => {
      this.#core.operations.recordFailure("accept", cause);
      options.onFailure?.(cause);
    };
    let isToRun = false;
    try {
      const result = await this.#store(event, options, onFailure);
      isToRun = hasWorkLeft(result.answer.accepted);
      return await this.#confirm(event, options, result, onFailure);
    } finally {
      if (!isToRun) uncountWaiting();
      this.#underWayCount--;
      if (this.#underWayCount === 0) for (const resolve of this.#restWaiters.splice(0)) resolve();
    }
  }

  /** Resolves once no event is being accepted. */
  atRest(): Promise<void> {
    if (this.#underWayCount === 0) return Promise.resolve();
    return new Promise((resolve) => this.#restWaiters.push(resolve));
  }

  /** A person has decided about an entry. */
  onHeldChanged(): void {
    this.#heldQuota.onDecided();
  }

  /** Applies the table of deduplication. In rare cases a fact is missing. It is then looked up, and the event is tried again. */
  async #store(event: VerifiedEvent, options: LaneOptions, onFailure: OnFailure): Promise<StoreResult> {
    for (let knownFacts = NO_KNOWN_FACTS; ; ) {
      const run = this.#reserve(event.key, options);
      let result: ChangeResult<AcceptAnswer> | null = null;
      try {
        result = await this.#write(event, options, knownFacts, run, onFailure);
      } catch (error) {
        // A full store refuses every event. Any other refusal is about this event.
        if (isInboxFullError(error)) this.#core.operations.recordFailure("accept", error);
        throw error;
      } finally {
        if (run !== null && !isBegun(result?.answer)) await this.#runs.giveUp(run);
      }
      const { answer, version } = result;
      if (answer.kind === "accepted")
        return { answer, run: isBegun(answer) ? run : null, knownFacts, version };
      knownFacts = await this.#lookUp(answer.need, event, options, knownFacts, onFailure);
    }
  }

  /** A run that may begin in the write that accepts the event. */
  #reserve(key: string, { runAtOnce, context, lane }: LaneOptions): Run | null {
    const runs = this.#runs;
    const runner = runAtOnce ?? this.#dispatcher.runnerOfNew(lane);
    if (runner === null || runs.has(key) || (runAtOnce === undefined && !runs.mayBegin(lane))) return null;
    return runs.reserve(key, {
      runner,
      lane,
      context: context ?? emptyContext,
      inBackground: runAtOnce === undefined,
      earlyBecause: runAtOnce === undefined ? null : "requested",
    });
  }

  #write(
    event: VerifiedEvent,
    { deadlineMs = DEFAULT_DEADLINE_MS, delayMs = 0, lane, runAtOnce, trace = null, ...options }: LaneOptions,
    knownFacts: KnownFacts,
    run: Run | null,
    onFailure: OnFailure,
  ): Promise<ChangeResult<AcceptAnswer>> {
    const { records, store } = this.#core;
    const { key, delivery } = event;
    const change = acceptChange({
      event,
      delayMs,
      lane,
      trace,
      maxHeld: options.maxHeld ?? Number.POSITIVE_INFINITY,
      forgottenBefore: () => store.forgottenBefore?.(delivery.tenant) ?? Number.NEGATIVE_INFINITY,
      knownFacts,
      run,
      beginWhich: runAtOnce === undefined ? "next" : "this",
    });
    // Most events are new, so the first guess is that there is no record.
    const guess = run === null && this.#runs.has(key) ? undefined : null;
    return records.change({ key, deadlineMs, onFailure, guess, change });
  }

  /** Starts the run that was begun, and answers. Before that, it waits for the replicas, if the store has any. */
  async #confirm(
    event: VerifiedEvent,
    { runAtOnce, delayMs = 0, lane }: LaneOptions,
    { answer: { accepted, state }, run, knownFacts, version }: StoreResult,
    onFailure: OnFailure,
  ): Promise<AcceptResult> {
    if (accepted.outcome === "held" && knownFacts.mayBeHeld) this.#heldQuota.countHeld(event.delivery.tenant);
    try {
      if (version !== null) await this.#core.store.replicated?.([{ key: event.key, version }]);
    } catch (error) {
      onFailure(error);
      throw error;
    } finally {
      if (run !== null) this.#start(run, accepted);
      else if (hasWorkLeft(accepted)) this.#dispatcher.onStored(delayMs, lane);
    }
    if (hasWorkLeft(accepted)) this.#core.operations.recordSuccess("accept");
    return runAtOnce === undefined ? accepted : { ...accepted, whenHandled: reportOf(run, state) };
  }

  /** The run may be of an event that another request accepted. Then its handlers are called in no request's context. */
  #start(run: Run, accepted: AcceptResult): void {
    if (!hasWorkLeft(accepted) || run.input.eventId !== accepted.eventId) run.context = emptyContext;
    this.#runs.start(run);
  }

  async #lookUp(
    need: Need,
    { delivery }: VerifiedEvent,
    { maxHeld = Number.POSITIVE_INFINITY }: AcceptOptions,
    knownFacts: KnownFacts,
    onFailure: OnFailure,
  ): Promise<KnownFacts> {
    if (need === "held") {
      await this.#heldQuota.check(delivery.tenant, maxHeld);
      return { ...knownFacts, mayBeHeld: true };
    }
    const claims = new Map(knownFacts.claims);
    for (const claim of need.claims) {
      claims.set(claim.key, { claim, ...(await this.#core.claims.acquire(claim, onFailure)) });
    }
    return { ...knownFacts, claims };
  }
}

function isBegun(answer: AcceptAnswer | undefined): boolean {
  return answer?.kind === "accepted" && answer.accepted.isBegun;
}

async function reportOf(run: Run | null, state: RunReport["state"]): Promise<RunReport> {
  return run === null ? { state, ran: false } : run.report();
}

function isInboxFullError(error: unknown): boolean {
  return isPayhooksError(error) && error.code === "ERR_INBOX_FULL";
}
