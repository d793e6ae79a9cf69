import { isNotSearchable } from "../../protocol/errors.ts";
import type { Stopwatch } from "../../time/clock.ts";
import type { ListedEvent } from "../contract/store.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { type KnownRecords, MAX_KNOWN_RECORDS } from "./known-records.ts";

/** How often to check. A check takes some time too; together, a loss is noticed within 5 s. */
const LOSS_CHECK_INTERVAL_MS = 2_000;
/** How often to list the events that have waited longest. */
const LIST_INTERVAL_MS = 600_000;
/** A list that has failed is repeated after this time. */
const FAILED_LIST_PAUSE_MS = 60_000;

/** Checks every two seconds whether the store still has its data. Without this check, nobody would notice a loss. */
export class LossWatch {
  readonly #core: InboxCore;
  readonly #onFailure: () => void;
  readonly #knownRecords: KnownRecords;
  #lostAt: number | null = null;
  #checking: Promise<void> | null = null;
  /** Since the last list began; null if there was none. */
  #sinceListed: Stopwatch | null = null;
  #listPauseMs = LIST_INTERVAL_MS;

  /** @param onFailure called if the store cannot be asked. */
  constructor(core: InboxCore, knownRecords: KnownRecords, onFailure: () => void) {
    this.#core = core;
    this.#knownRecords = knownRecords;
    this.#onFailure = onFailure;
  }

  /** When a loss was last noticed, on this process's clock; null if never. */
  get lostAt(): number | null {
    return this.#lostAt;
  }

  /** Checks every two seconds until the inbox closes. */
  start(): void {
    if (this.#core.store.findLoss === undefined) return;
    this.#core.environment.after(LOSS_CHECK_INTERVAL_MS, () => {
      if (!this.#core.isClosing) void this.check().finally(() => this.start());
    });
  }

  /** Checks now. Never rejects: a store that cannot be reached says nothing about its data. */
  check(): Promise<void> {
    this.#checking ??= this.#checkOnce().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  async #checkOnce(): Promise<void> {
    const { store, environment, notify, operations } = this.#core;
    try {
      const loss = (await store.findLoss?.(this.#knownRecords.recordsAt(store.now("")))) ?? null;
      if (loss !== null) {
        this.#lostAt = environment.now();
        notify({ type: "data-lost", why: loss });
        if (loss !== "evicting") {
          // Each loss is reported once.
          this.#knownRecords.forget();
          // Writes may fail now, even if the last canary has succeeded.
          await store.open().catch((error: unknown) => operations.recordCanaryFailure("accept", error));
        }
      }
      await this.#list();
    } catch {
      // An error says nothing about the data. But the store may be unreachable.
      this.#onFailure();
    }
  }

  /** Lists the events that have waited longest and the newest finished ones. An earlier process may have stored them. */
  async #list(): Promise<void> {
    const { store } = this.#core;
    if (store.findLoss === undefined) return;
    if (this.#sinceListed !== null && this.#sinceListed.elapsedMs < this.#listPauseMs) return;
    this.#sinceListed = this.#core.stopwatch();
    this.#listPauseMs = FAILED_LIST_PAUSE_MS;
    const { events } = await store.list({}, null, MAX_KNOWN_RECORDS);
    this.#knownRecords.onListed([...events, ...(await this.#newestFinished())]);
    this.#listPauseMs = LIST_INTERVAL_MS;
  }

  async #newestFinished(): Promise<readonly ListedEvent[]> {
    try {
      return (await this.#core.store.list({ state: "finished" }, null, MAX_KNOWN_RECORDS, "newest")).events;
    } catch (error) {
      if (isNotSearchable(error)) return [];
      throw error;
    }
  }
}
