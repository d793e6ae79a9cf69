import { describeError } from "../../protocol/foreign-error.ts";
import type { Stopwatch } from "../../time/clock.ts";
import { withTimeout } from "../../time/with-timeout.ts";
import type { Events } from "../contract/events.ts";
import type { Health } from "../contract/inbox.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { describeFailure } from "../write/store-operations.ts";
import type { CanarySender } from "./canary-sender.ts";
import type { LossWatch } from "./loss-watch.ts";

/** A health check waits as long as a delivery would. */
const CHECK_TIMEOUT_MS = 2_000;
/** How long to wait for the counts. `ok` does not depend on them. */
const COUNT_TIMEOUT_MS = 1_000;
/** If a count fails or takes longer, the last count is shown for this long. */
const COUNTS_STAND_IN_MS = 30_000;
/** Counts are used again for this long. Balancers ask often, and the endpoint may be public. */
const COUNTS_TTL_MS = 1_000;

/** Everything about an inbox's health except `lostAt`, which needs no question to the store. */
type HealthFinding = Omit<Health, "lostAt">;

type CountsOfHealth = Pick<Health, "waiting" | "retrying" | "running" | "held" | "oldestDueMs">;

const NO_COUNTS: CountsOfHealth = {
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
  #lastCount: { readonly counts: CountsOfHealth; readonly since: Stopwatch } | null = null;

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

  async check(): Promise<Health> {
    const finding = await this.#withTimeout(
      CHECK_TIMEOUT_MS,
      this.#checkNow().catch((error: unknown) => failedFinding(describeError(error))),
      () => failedFinding(this.#lastCause() ?? `the store has not answered within ${CHECK_TIMEOUT_MS} ms`),
    );
    return { ...finding, lostAt: this.#losses.lostAt };
  }

  async #checkNow(): Promise<HealthFinding> {
    if (this.#core.isClosing) return failedFinding("the inbox is closing or closed");
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
    return this.#core.store.immediate !== true && since.elapsedMs < COUNTS_TTL_MS;
  }

  /** If a check takes long, this answer does not wait for it. The next answer has its result. */
  #checkForLoss(): Promise<void> {
    return this.#withTimeout(COUNT_TIMEOUT_MS, this.#losses.check(), () => {});
  }

  /** All callers at one time share one count. If it fails or takes long, the last count is the answer, unless it is too old. */
  #counts(): Promise<CountsOfHealth> {
    if (this.#lastCount !== null && this.#isFresh(this.#lastCount.since)) {
      return Promise.resolve(this.#lastCount.counts);
    }
    this.#counting ??= this.#countNow().finally(() => {
      this.#counting = null;
    });
    const lastCounts = (): CountsOfHealth =>
      this.#lastCount !== null && this.#lastCount.since.elapsedMs < COUNTS_STAND_IN_MS
        ? this.#lastCount.counts
        : NO_COUNTS;
    return this.#withTimeout(COUNT_TIMEOUT_MS, this.#counting, lastCounts);
  }

  async #countNow(): Promise<CountsOfHealth> {
    const since = this.#core.stopwatch();
    const { waiting, retrying, running, held, oldestDueMs } = await this.#events.counts();
    const counts = { waiting, retrying, running, held, oldestDueMs };
    this.#lastCount = { counts, since };
    return counts;
  }

  /** Resolves to the action's value, or to the other value if the action rejects or takes too long. */
  #withTimeout<T>(limitMs: number, action: Promise<T>, otherwise: () => T): Promise<T> {
    const lateError = (): Error => new Error("it takes too long");
    return withTimeout(this.#core.environment, limitMs, () => action, lateError).catch(otherwise);
  }
}

function failedFinding(detail: string): HealthFinding {
  return { ok: false, detail, failing: "accept", ...NO_COUNTS };
}
