import { inboxErrorNotice } from "../notices/notice.ts";
import type { NoticeBoard } from "../notices/notice-board.ts";
import { isPayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { type Clock, sleep } from "../time/clock.ts";
import type { Effects } from "./effects.ts";

/** How long a start waits for the merchant's database. Deliveries can be accepted without it. */
const OPEN_TIMEOUT_MS = 2_000;
const FIRST_PRUNE_DELAY_MS = 60_000;
const PRUNE_INTERVAL_MS = 3_600_000;
/** A pause between two steps, during which others can use the database. */
const STEP_PAUSE_MS = 100;

/** Opens the table of effects at the start, and regularly deletes old effects from then on. */
export class EffectsUpkeep {
  readonly #effects: Effects;
  readonly #clock: Clock;
  readonly #notices: NoticeBoard;
  #isClosed = false;
  #prunedAt: number | null = null;

  constructor(effects: Effects, clock: Clock, notices: NoticeBoard) {
    this.#effects = effects;
    this.#clock = clock;
    this.#notices = notices;
  }

  /** @throws PayhooksError if the table cannot be used. If the database does not answer, there is only a notice. */
  async open(): Promise<void> {
    const opening = this.#effects.open();
    const lateSignal = sleep(this.#clock, OPEN_TIMEOUT_MS).then(() => "late" as const);
    try {
      if ((await Promise.race([opening, lateSignal])) === "late") {
        opening.catch((error: unknown) => this.#warn(error));
      }
    } catch (error) {
      if (isPayhooksError(error) && error.code !== "ERR_EFFECTS_UNAVAILABLE") throw error;
      this.#warn(error);
    }
  }

  #warn(error: unknown): void {
    this.#notices.post({
      type: "warning",
      what: `The table of effects could not be opened: ${describeError(error)}.`,
      fix: "Until its database answers, handlers that use effects are retried.",
    });
  }

  /** Begins to delete old effects once an hour, in small steps. */
  begin(): void {
    this.#schedulePrune(FIRST_PRUNE_DELAY_MS);
  }

  /** Does one step, if there was none for an hour. For processes that run nothing in the background. */
  async pruneIfDue(): Promise<void> {
    const now = this.#clock.monotonic();
    if (this.#prunedAt !== null && now - this.#prunedAt < PRUNE_INTERVAL_MS) return;
    if (!(await this.#prune())) this.#prunedAt = now;
  }

  /** Does one step. True if there is more to delete. */
  async #prune(): Promise<boolean> {
    try {
      return await this.#effects.prune();
    } catch (error) {
      this.#notices.post(inboxErrorNotice("pruneEffects", error));
      return false;
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  #schedulePrune(ms: number): void {
    this.#clock.after(ms, () => {
      if (this.#isClosed) return;
      void this.#prune().then((isMore) => this.#schedulePrune(isMore ? STEP_PAUSE_MS : PRUNE_INTERVAL_MS));
    });
  }
}
