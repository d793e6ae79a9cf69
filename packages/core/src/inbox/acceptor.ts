import { type Awaitable, awaitableOf, type Settle } from "../awaitable.ts";
import type { Stopwatch } from "../clock.ts";
import { type AcceptAnswer, type AcceptPlan, acceptStep, type Known, type Need } from "./accepting.ts";
import type { Accepted, AcceptOptions, Runner, RunReport, VerifiedEvent } from "./inbox.ts";
import type { InboxParts } from "./parts.ts";
import { claimReference } from "./record/reference-claim.ts";
import type { BegunRun, Runs } from "./runs.ts";

const DEFAULT_DEADLINE_MS = 2_000;
/** How many entries are held is asked for no more often than this. */
const HELD_KNOWN_FOR_MS = 1_000;
const NOTHING_KNOWN: Known = { referenceReused: null, held: null };

/** Whoever runs events in this process, as far as accepting concerns it. */
export interface BackgroundRuns {
  /** Null while nothing may be begun at accept: none runs here, it is paused, or others have waited longer. */
  readonly runner: Runner | null;
  /** Something was accepted that was not begun, due in so many milliseconds. */
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
  #heldKnown: { count: number; readonly since: Stopwatch } | null = null;
  #underWay = 0;
  #whenAtRest: (() => void)[] = [];

  constructor(parts: InboxParts, runs: Runs, background: BackgroundRuns) {
    this.#parts = parts;
    this.#runs = runs;
    this.#background = background;
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

  /** Entries were held or released by somebody else: how many there are has to be asked for. */
  heldChanged(): void {
    this.#heldKnown = null;
  }

  #ended(): void {
    this.#underWay--;
    if (this.#underWay === 0) for (const tell of this.#whenAtRest.splice(0)) tell();
  }

  /** Asks the table. Comes back with more knowledge where that was needed, which is seldom. */
  #ask(acceptance: Acceptance, known: Known): void {
    const { event, options, settle } = acceptance;
    const { key } = event;
    const { changes, store } = this.#parts;
    const runner = options.handle ?? this.#background.runner;
    const begin = runner === null ? null : this.#beginPlan(key, options, runner);
    if (begin !== null) this.#runs.reserve(key);
    changes.ask<AcceptAnswer>({
      key,
      deadlineMs: options.deadlineMs ?? DEFAULT_DEADLINE_MS,
      // Of a new event there is nothing: most are.
      guess: begin === null && this.#runs.has(key) ? undefined : null,
      step: acceptStep({
        event,
        delayMs: options.delayMs ?? 0,
        maxHeld: options.maxHeld ?? Number.POSITIVE_INFINITY,
        forgottenBefore: () => store.forgottenBefore?.() ?? Number.NEGATIVE_INFINITY,
        known,
        begin,
        stopwatch: () => this.#parts.stopwatch(),
      }),
      settle: (outcome) => {
        const isBegun = outcome.ok && outcome.answer.kind === "accepted" && outcome.answer.begun !== null;
        if (begin !== null && !isBegun) this.#runs.giveBack(key);
        if (!outcome.ok) settle.fail(outcome.error);
        else if (outcome.answer.kind === "accepted") {
          this.#accepted(acceptance, outcome.answer, outcome.version, runner);
        } else {
          const finding = this.#findOut(outcome.answer.need, event, known);
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

  /** Starts what was begun, and answers: once replicas have it, where the store waits for them. */
  #accepted(
    { event, options, settle }: Acceptance,
    { accepted, state, begun }: Extract<AcceptAnswer, { kind: "accepted" }>,
    version: string | null,
    runner: Runner | null,
  ): void {
    if (accepted.outcome === "held" && this.#heldKnown !== null) this.#heldKnown.count++;
    const { handle, delayMs = 0 } = options;
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
        this.#runs.start({ ...begun, runner, inBackground: handle === undefined, ended });
      } else if (isNews(accepted)) this.#background.added(delayMs);
    };
    const { store } = this.#parts;
    if (store.settled === undefined || version === null) {
      start();
      settle.done(answer);
      return;
    }
    const { key } = event;
    const settled = async (): Promise<void> => store.settled?.([{ key, version }]);
    settled()
      .finally(start)
      .then(() => settle.done(answer), settle.fail);
  }

  async #findOut(need: Need, event: VerifiedEvent, known: Known): Promise<Known> {
    if (need === "held") return { ...known, held: await this.#countHeld() };
    const { referenceKey } = event;
    if (referenceKey === null) return { ...known, referenceReused: false };
    const owner = await this.#parts.changes.change({
      key: referenceKey,
      deadlineMs: DEFAULT_DEADLINE_MS,
      guess: null,
      step: (record, now) => claimReference(record, event, now),
    });
    return { ...known, referenceReused: owner !== event.key };
  }

  async #countHeld(): Promise<number> {
    const known = this.#heldKnown;
    const { store } = this.#parts;
    if (known !== null && store.immediate !== true && known.since.elapsedMs < HELD_KNOWN_FOR_MS) {
      return known.count;
    }
    const since = this.#parts.stopwatch();
    const { held } = await store.counts();
    this.#heldKnown = { count: held, since };
    return held;
  }
}

/** A run, or the onHeld handlers, may wait for somebody. */
function isNews({ outcome }: Accepted): boolean {
  return outcome === "new" || outcome === "progress" || outcome === "held";
}
