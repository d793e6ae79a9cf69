import { describeError } from "../protocol/foreign-error.ts";
import type { Stopwatch } from "../time/clock.ts";
import type { EventEntries } from "./events.ts";
import type { Health } from "./inbox.ts";
import type { LossWatch } from "./loss-watch.ts";
import type { InboxParts } from "./parts.ts";

/** A health check waits no longer than a delivery would. */
const LIMIT_MS = 2_000;
/** A good result is used again for this long. Balancers ask often, and the endpoint may be public. */
const GOOD_FOR_MS = 1_000;

/** Everything about an inbox's health but `lostAt`, which is known without asking the store. */
type Finding = Omit<Health, "lostAt">;

const NOT_COUNTED = { waiting: null, running: null, held: null, oldestDueMs: null } as const;

/** Finds out whether an event could be accepted now, by trying a write. */
export class HealthCheck {
  readonly #parts: InboxParts;
  readonly #ready: () => Promise<void>;
  readonly #losses: LossWatch;
  readonly #events: Pick<EventEntries, "counts">;
  #probing: Promise<void> | null = null;
  /** When the last successful probe began. */
  #good: Stopwatch | null = null;

  constructor(
    parts: InboxParts,
    ready: () => Promise<void>,
    losses: LossWatch,
    events: Pick<EventEntries, "counts">,
  ) {
    this.#parts = parts;
    this.#events = events;
    this.#ready = ready;
    this.#losses = losses;
  }

  async ask(): Promise<Health> {
    const finding = await this.#inTime(this.#find().catch((error: unknown) => notOk(describeError(error))));
    return { ...finding, lostAt: this.#losses.lostAt };
  }

  async #find(): Promise<Finding> {
    if (this.#parts.isClosing) return notOk("the inbox is closing or closed");
    await this.#ready();
    await Promise.all([this.#probe(), this.#losses.look()]);
    const { waiting, retrying, running, held, oldestDueMs } = await this.#events.counts();
    return { ok: true, detail: null, waiting: waiting + retrying, running, held, oldestDueMs };
  }

  /** All callers at one time share one probe. */
  #probe(): Promise<void> {
    const { store } = this.#parts;
    if (this.#good !== null && store.immediate !== true && this.#good.elapsedMs < GOOD_FOR_MS) {
      return Promise.resolve();
    }
    this.#probing ??= this.#probeNow().finally(() => {
      this.#probing = null;
    });
    return this.#probing;
  }

  async #probeNow(): Promise<void> {
    const since = this.#parts.stopwatch();
    this.#good = null;
    await this.#parts.store.probe();
    this.#good = since;
  }

  #inTime(finding: Promise<Finding>): Promise<Finding> {
    return new Promise((resolve) => {
      const cancel = this.#parts.environment.after(LIMIT_MS, () =>
        resolve(notOk(`the store has not answered within ${LIMIT_MS} ms`)),
      );
      void finding.then((found) => {
        cancel();
        resolve(found);
      });
    });
  }
}

function notOk(detail: string): Finding {
  return { ok: false, detail, ...NOT_COUNTED };
}
