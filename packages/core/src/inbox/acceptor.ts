import { isPayhooksError } from "../protocol/errors.ts";
import { emptyContext } from "../time/async-context.ts";
import { type Awaitable, awaitableOf, type Settle } from "../time/awaitable.ts";
import { type AcceptAnswer, type AcceptPlan, acceptStep, type Known, type Need } from "./accepting.ts";
import { HeldRoom } from "./held-room.ts";
import type { AcceptOptions, Runner } from "./inbox.ts";
import type { InboxParts } from "./parts.ts";
import type { Accepted, RunReport, VerifiedEvent } from "./record/event.ts";
import type { BegunRun, Runs } from "./runs.ts";

const DEFAULT_DEADLINE_MS = 2_000;
const NOTHING_KNOWN: Known = { referenceReused: null, claim: null, mayBeHeld: false };

/** The part of the inbox that runs events, as the acceptor sees it. */
export interface BackgroundRuns {
  /**
   * Null if accepting must not begin a run: this process runs no events, it is paused, or other events have waited
   * longer.
   */
  readonly runner: Runner | null;
  /** An accepted event was not begun. It falls due in `inMs` milliseconds. */
  added(inMs: number): void;
}

/** One event that is being accepted. */
interface Acceptance {
  readonly event: VerifiedEvent;
  readonly options: AcceptOptions;
  readonly settle: Settle<Accepted>;
}

/** Accepts events, and begins them in the same write where there is room. */
export class Acceptor {
  readonly #parts: InboxParts;
  readonly #runs: Runs;
  readonly #background: BackgroundRuns;
  readonly #heldRoom: HeldRoom;
  #underWay = 0;
  #whenAtRest: (() => void)[] = [];

  constructor(parts: InboxParts, runs: Runs, background: BackgroundRuns) {
    this.#parts = parts;
    this.#runs = runs;
    this.#background = background;
    this.#heldRoom = new HeldRoom(parts);
  }

  accept(event: VerifiedEvent, options: AcceptOptions): Awaitable<Accepted> {
    this.#underWay++;
    return awaitableOf((given) => {
      const settle: Settle<Accepted> = {
        done: (accepted) => {
          this.#ended();
          given.done(accepted);
        },
        fail: (error) => {
          this.#ended();
          given.fail(error);
        },
      };
      this.#ask({ event, options, settle }, NOTHING_KNOWN);
    });
  }

  /** Resolves once no event is being accepted. */
  atRest(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenAtRest.push(resolve));
  }

  /** A person has decided about an entry. */
  heldChanged(): void {
    this.#heldRoom.changed();
  }

  #ended(): void {
    this.#underWay--;
    if (this.#underWay === 0) for (const tell of this.#whenAtRest.splice(0)) tell();
  }

  /** Applies the table of deduplication. In rare cases a fact is missing. It is then looked up, and the event is tried again. */
  #ask(acceptance: Acceptance, known: Known): void {
    const { event, options, settle } = acceptance;
    const { key } = event;
    const { changes, store } = this.#parts;
    const runner = options.handle ?? this.#background.runner;
    const { acts } = this.#parts;
    const onFailure = (cause: unknown): void => {
      acts.failed("accept", cause);
      options.onFailure?.(cause);
    };
    const begin = runner === null ? null : this.#beginPlan(key, options, runner);
    if (begin !== null) this.#runs.reserve(key);
    changes.ask<AcceptAnswer>({
      key,
      deadlineMs: options.deadlineMs ?? DEFAULT_DEADLINE_MS,
      onFailure,
      // Most events are new, so the first guess is that there is no record.
      guess: begin === null && this.#runs.has(key) ? undefined : null,
      step: acceptStep({
        event,
        delayMs: options.delayMs ?? 0,
        maxHeld: options.maxHeld ?? Number.POSITIVE_INFINITY,
        forgottenBefore: () => store.forgottenBefore?.(event.delivery.tenant) ?? Number.NEGATIVE_INFINITY,
        known,
        begin,
        stopwatch: () => this.#parts.stopwatch(),
      }),
      settle: (outcome) => {
        const isBegun = outcome.ok && outcome.answer.kind === "accepted" && outcome.answer.begun !== null;
        if (begin !== null && !isBegun) this.#runs.giveBack(key);
        if (!outcome.ok) {
          // A store without room refuses every event. Any other refusal is about this one.
          if (isFull(outcome.error)) acts.failed("accept", outcome.error);
          settle.fail(outcome.error);
        } else if (outcome.answer.kind === "accepted") {
          this.#accepted(acceptance, outcome.answer, outcome.version, runner, known, onFailure);
        } else {
          const finding = this.#findOut(outcome.answer.need, acceptance, known, onFailure);
          finding.then((more) => this.#ask(acceptance, more), settle.fail);
        }
      },
    });
  }

  #beginPlan(key: string, { handle }: AcceptOptions, runner: Runner): AcceptPlan["begin"] {
    const runs = this.#runs;
    if (runs.has(key) || (handle === undefined && runs.places.room === 0)) return null;
    return {
      what: handle === undefined ? "next" : "this",
      options: runs.beginOptions(key, runner, handle === undefined ? null : "asked"),
      isAllowed: () => runs.isReserved(key),
    };
  }

  /** Starts the run that was begun, and answers. If the store has replicas to wait for, they have the event before that. */
  #accepted(
    { event, options, settle }: Acceptance,
    { accepted, state, begun }: Extract<AcceptAnswer, { kind: "accepted" }>,
    version: string | null,
    runner: Runner | null,
    { claim, mayBeHeld }: Known,
    onFailure: (cause: unknown) => void,
  ): void {
    if (accepted.outcome === "held" && mayBeHeld) this.#heldRoom.added(event.delivery.tenant);
    const { handle, delayMs = 0, context } = options;
    let ended: BegunRun["ended"] = null;
    let answer = accepted;
    if (handle !== undefined) {
      const handled =
        begun === null
          ? Promise.resolve<RunReport>({ state, ran: false })
          : new Promise<RunReport>((resolve) => {
              ended = resolve;
            });
      answer = { ...accepted, handled };
    }
    const start = (): void => {
      if (begun !== null && runner !== null) {
        // The run may be one of an event that another request accepted.
        const isOwn = isNews(accepted) && begun.lease.eventId === accepted.eventId;
        this.#runs.start({
          ...begun,
          runner,
          context: (isOwn ? context : undefined) ?? emptyContext,
          inBackground: handle === undefined,
          ended,
        });
      } else if (isNews(accepted)) this.#background.added(delayMs);
    };
    const done = (): void => {
      if (isNews(accepted)) this.#parts.acts.passed("accept");
      settle.done(answer);
    };
    const { store } = this.#parts;
    if (store.settled === undefined || version === null) {
      start();
      done();
      return;
    }
    const own = { key: event.key, version };
    // A failover that lost the claim of its reference would let another event with the same reference run.
    const settled = async (): Promise<void> => store.settled?.(claim === null ? [own] : [claim, own]);
    settled()
      .finally(start)
      .then(done, (error: unknown) => {
        onFailure(error);
        settle.fail(error);
      });
  }

  async #findOut(
    need: Need,
    { event, options: { maxHeld = Number.POSITIVE_INFINITY } }: Acceptance,
    known: Known,
    onFailure: (cause: unknown) => void,
  ): Promise<Known> {
    if (need === "held") {
      await this.#heldRoom.check(event.delivery.tenant, maxHeld);
      return { ...known, mayBeHeld: true };
    }
    const { owner, claim } = await this.#parts.claims.take(need.claim, onFailure);
    return { ...known, referenceReused: owner !== event.key, claim };
  }
}

function isFull(error: unknown): boolean {
  return isPayhooksError(error) && error.code === "ERR_INBOX_FULL";
}

/** True if something of the event is left to run: the event itself, or its onHeld handlers. */
function isNews({ outcome }: Accepted): boolean {
  return outcome === "new" || outcome === "progress" || outcome === "held";
}
