import { type Clock, sleep } from "../time/clock.ts";

/** Hints within this time are sent as one hint. */
const GATHER_DELAY_MS = 5;
/** How often to check that a session listens, as long as anybody wants hints. */
const LISTEN_CHECK_MS = 2_000;

export interface HintDependencies {
  readonly clock: Clock;
  announce(): Promise<unknown>;
  /** Makes sure that there is a session that listens. */
  ensureListening(): Promise<unknown>;
}

/**
 * Tells other processes that something is due. A hint is a statement of its own, because a notification makes its
 * commit wait for the others of the whole server. Every process hears it, and those that have a place poll. No call
 * waits for a hint, and nothing relies on it.
 */
export class Hints {
  readonly #dependencies: HintDependencies;
  readonly #wakes = new Set<() => boolean>();
  #isWanted = false;
  #isSending = false;
  #isCheckingListener = false;

  constructor(dependencies: HintDependencies) {
    this.#dependencies = dependencies;
  }

  /** Sends a hint soon. Hints that are requested while a hint is being sent are gathered. */
  send(): void {
    this.#isWanted = true;
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    while (this.#isWanted) {
      await sleep(this.#dependencies.clock, GATHER_DELAY_MS);
      this.#isWanted = false;
      await this.#dependencies.announce().catch(() => {});
    }
    this.#isSending = false;
  }

  /** A notification has arrived. */
  onNotification(): void {
    for (const wake of this.#wakes) wake();
  }

  /** Calls `wake` at each hint, until the returned function is called. */
  async listen(wake: () => boolean): Promise<() => void> {
    this.#wakes.add(wake);
    // If this fails, it is tried again regularly.
    await this.#dependencies.ensureListening().catch(() => {});
    if (!this.#isCheckingListener) void this.#checkListener();
    return () => void this.#wakes.delete(wake);
  }

  async #checkListener(): Promise<void> {
    this.#isCheckingListener = true;
    while (this.#wakes.size > 0) {
      await sleep(this.#dependencies.clock, LISTEN_CHECK_MS);
      if (this.#wakes.size > 0) await this.#dependencies.ensureListening().catch(() => {});
    }
    this.#isCheckingListener = false;
  }
}
