import { describeError } from "../../protocol/foreign-error.ts";
import type { Stopwatch } from "../../time/clock.ts";
import { inTime } from "../../time/in-time.ts";
import type { Events } from "../contract/events.ts";
import type { Health } from "../contract/inbox.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { describeFailure } from "../write/store-operations.ts";
import type { CanarySender } from "./canary-sender.ts";
import type { LossWatch } from "./loss-watch.ts";

/** A health check waits as long as a delivery would. */
const CHECK_LIMIT_MS = 2_000;
/** How long to wait for the counts. `ok` does not depend on them. */
const COUNT_LIMIT_MS = 1_000;
/** If a count fails or takes longer, the last count is shown for this long. */
const COUNTS_STAND_IN_MS = 30_000;
/** Counts are used again for this long. Balancers ask often, and the endpoint may be public. */
const GOOD_FOR_MS = 1_000;

/** Everything about an inbox's health except `lostAt`, which needs no question to the store. */
type HealthNow = Omit<Health, "lostAt">;

type CountsOfHealth = Pick<Health, "waiting" | "retrying" | "running" | "held" | "oldestDueMs">;

const NOT_COUNTED: CountsOfHealth = {
  waiting: null,
  retrying: null,
  running: null,
  held: null,
  oldestDueMs: null,
};

/** Says whether an event could be accepted now and would run. Events and canaries have tested this before a caller asks. */
export class HealthCheck {
  readonly #core: InboxCore;
  readonly #ready: () => Promise<void>;
  readonly #losses: LossWatch;
  readonly #canary: CanarySender;
  readonly #events: Pick<Events, "counts">;
  #counting: Promise<CountsOfHealth> | null = null;
  #counted: { readonly counts: CountsOfHealth; readonly since: Stopwatch } | null = null;

  constructor(
    core: InboxCore,
    ready: () => Promise<void>,
    losses: LossWatch,
    canary: CanarySender,
    events: Pick<Events, "counts">,
  ) {
    this.#core = core;
    this.#events = events;
    this.#ready = ready;
    this.#losses = losses;
    this.#canary = canary;
  }

  async ask(): Promise<Health> {
    const finding = await this.#within(
      CHECK_LIMIT_MS,
      this.#find().catch((error: unknown) => notOk(describeError(error))),
      () => notOk(this.#lastCause() ?? `the store has not answered within ${CHECK_LIMIT_MS} ms`),
    );
    return { ...finding, lostAt: this.#losses.lostAt };
  }

  async #find(): Promise<HealthNow> {
    if (this.#core.isClosing) return notOk("the inbox is closing or closed");
    await this.#ready();
    const [counts] = await Promise.all([this.#counts(), this.#canary.whenKnown(), this.#checkForLoss()]);
    const { failing } = this.#core.operations;
    if (failing === null) return { ok: true, detail: null, failing: null, ...counts };
    return {
      ok: false,
      detail: describeFailure(failing.operation, failing.cause),
      failing: failing.operation,
      ...counts,
    };
  }

  #lastCause(): string | null {
    const { failing } = this.#core.operations;
    return failing === null ? null : describeFailure(failing.operation, failing.cause);
  }

  #isFresh(since: Stopwatch): boolean {
    return this.#core.store.immediate !== true && since.elapsedMs < GOOD_FOR_MS;
  }

  /** If a check takes long, this answer does not wait for it. The next answer has its result. */
  #checkForLoss(): Promise<void> {
    return this.#within(COUNT_LIMIT_MS, this.#losses.check(), () => {});
  }

  /** All callers at one time share one count. If it fails or takes long, the last count is the answer, unless it is too old. */
  #counts(): Promise<CountsOfHealth> {
    if (this.#counted !== null && this.#isFresh(this.#counted.since)) {
      return Promise.resolve(this.#counted.counts);
    }
    this.#counting ??= this.#countNow().finally(() => {
      this.#counting = null;
    });
    const last = (): CountsOfHealth =>
      this.#counted !== null && this.#counted.since.elapsedMs < COUNTS_STAND_IN_MS
        ? this.#counted.counts
        : NOT_COUNTED;
    return this.#within(COUNT_LIMIT_MS, this.#counting, last);
  }

  async #countNow(): Promise<CountsOfHealth> {
    const since = this.#core.stopwatch();
    const { waiting, retrying, running, held, oldestDueMs } = await this.#events.counts();
    const counts = { waiting, retrying, running, held, oldestDueMs };
    this.#counted = { counts, since };
    return counts;
  }

  /** Resolves to the action's value, or to the other value if the action rejects or takes too long. */
  #within<T>(limitMs: number, action: Promise<T>, otherwise: () => T): Promise<T> {
    const late = (): Error => new Error("it takes too long");
    return inTime(this.#core.environment, limitMs, () => action, late).catch(otherwise);
  }
}

function notOk(detail: string): HealthNow {
  return { ok: false, detail, failing: "accept", ...NOT_COUNTED };
}
