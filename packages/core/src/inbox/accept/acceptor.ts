import { isPayhooksError } from "../../protocol/errors.ts";
import { emptyContext } from "../../time/async-context.ts";
import type { AcceptOptions } from "../contract/inbox.ts";
import type { Accepted, RunReport, VerifiedEvent } from "../record/event.ts";
import type { Lane } from "../record/lane.ts";
import type { Dispatcher } from "../run/dispatcher.ts";
import type { Run } from "../run/run.ts";
import type { Runs } from "../run/runs.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import type { Changed } from "../write/records.ts";
import { type AcceptAnswer, type AskedFacts, acceptChange, leavesWork, type Need } from "./accept-event.ts";
import { HeldQuota } from "./held-quota.ts";

const DEFAULT_DEADLINE_MS = 2_000;
const NOTHING_KNOWN: AskedFacts = { claims: new Map(), mayBeHeld: false };

/** How to accept an event, and where it waits if it is new. */
type LaneOptions = AcceptOptions & { readonly lane: Lane };

/** An event that the store has taken, or knew already. */
interface Stored {
  readonly answer: Extract<AcceptAnswer, { kind: "accepted" }>;
  /** The run that the same write began; null if it began none. */
  readonly run: Run | null;
  readonly known: AskedFacts;
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
  #underWay = 0;
  #whenAtRest: (() => void)[] = [];

  constructor(core: InboxCore, runs: Runs, dispatcher: Dispatcher) {
    this.#core = core;
    this.#runs = runs;
    this.#dispatcher = dispatcher;
    this.#heldQuota = new HeldQuota(core);
  }

  async accept(event: VerifiedEvent, given: AcceptOptions): Promise<Accepted> {
    this.#underWay++;
    const { crowds } = this.#runs;
    const options = { ...given, lane: crowds.laneOf(event) };
    const waitsNoMore = crowds.countWaiting(event);
    const onFailure: OnFailure = (cause) => {
      this.#core.operations.failed("accept", cause);
      options.onFailure?.(cause);
    };
    let isToRun = false;
    try {
      const stored = await this.#store(event, options, onFailure);
      isToRun = leavesWork(stored.answer.accepted);
      return await this.#confirm(event, options, stored, onFailure);
    } finally {
      if (!isToRun) waitsNoMore();
      this.#underWay--;
      if (this.#underWay === 0) for (const resolve of this.#whenAtRest.splice(0)) resolve();
    }
  }

  /** Resolves once no event is being accepted. */
  atRest(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenAtRest.push(resolve));
  }

  /** A person has decided about an entry. */
  heldChanged(): void {
    this.#heldQuota.forgetCounts();
  }

  /** Applies the table of deduplication. In rare cases a fact is missing. It is then looked up, and the event is tried again. */
  async #store(event: VerifiedEvent, options: LaneOptions, onFailure: OnFailure): Promise<Stored> {
    for (let known = NOTHING_KNOWN; ; ) {
      const run = this.#reserve(event.key, options);
      let changed: Changed<AcceptAnswer> | null = null;
      try {
        changed = await this.#write(event, options, known, run, onFailure);
      } catch (error) {
        // A full store refuses every event. Any other refusal is about this event.
        if (isFull(error)) this.#core.operations.failed("accept", error);
        throw error;
      } finally {
        if (run !== null && !isBegun(changed?.answer)) await this.#runs.giveUp(run);
      }
      const { answer, version } = changed;
      if (answer.kind === "accepted") return { answer, run: isBegun(answer) ? run : null, known, version };
      known = await this.#findOut(answer.need, event, options, known, onFailure);
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
    known: AskedFacts,
    run: Run | null,
    onFailure: OnFailure,
  ): Promise<Changed<AcceptAnswer>> {
    const { records, store } = this.#core;
    const { key, delivery } = event;
    const change = acceptChange({
      event,
      delayMs,
      lane,
      trace,
      maxHeld: options.maxHeld ?? Number.POSITIVE_INFINITY,
      forgottenBefore: () => store.forgottenBefore?.(delivery.tenant) ?? Number.NEGATIVE_INFINITY,
      known,
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
    { answer: { accepted, state }, run, known, version }: Stored,
    onFailure: OnFailure,
  ): Promise<Accepted> {
    if (accepted.outcome === "held" && known.mayBeHeld) this.#heldQuota.countHeld(event.delivery.tenant);
    try {
      if (version !== null) await this.#core.store.replicated?.([{ key: event.key, version }]);
    } catch (error) {
      onFailure(error);
      throw error;
    } finally {
      if (run !== null) this.#start(run, accepted);
      else if (leavesWork(accepted)) this.#dispatcher.onStored(delayMs, lane);
    }
    if (leavesWork(accepted)) this.#core.operations.succeeded("accept");
    return runAtOnce === undefined ? accepted : { ...accepted, handled: reportOf(run, state) };
  }

  /** The run may be of an event that another request accepted. Then its handlers are called in no request's context. */
  #start(run: Run, accepted: Accepted): void {
    if (!leavesWork(accepted) || run.input.eventId !== accepted.eventId) run.context = emptyContext;
    this.#runs.start(run);
  }

  async #findOut(
    need: Need,
    { delivery }: VerifiedEvent,
    { maxHeld = Number.POSITIVE_INFINITY }: AcceptOptions,
    known: AskedFacts,
    onFailure: OnFailure,
  ): Promise<AskedFacts> {
    if (need === "held") {
      await this.#heldQuota.check(delivery.tenant, maxHeld);
      return { ...known, mayBeHeld: true };
    }
    const claims = new Map(known.claims);
    for (const claim of need.claims) {
      claims.set(claim.key, { claim, ...(await this.#core.claims.acquire(claim, onFailure)) });
    }
    return { ...known, claims };
  }
}

function isBegun(answer: AcceptAnswer | undefined): boolean {
  return answer?.kind === "accepted" && answer.accepted.begun;
}

async function reportOf(run: Run | null, state: RunReport["state"]): Promise<RunReport> {
  return run === null ? { state, ran: false } : (await run.whenEnded).report;
}

function isFull(error: unknown): boolean {
  return isPayhooksError(error) && error.code === "ERR_INBOX_FULL";
}
