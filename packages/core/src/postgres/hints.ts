import { type Clock, sleep } from "../time/clock.ts";

/** Hints within this time are sent as one hint. */
const GATHER_MS = 5;
/** How often to check that a session listens, as long as anybody wants hints. */
const KEEP_MS = 2_000;

export interface HintDependencies {
  readonly clock: Clock;
  announce(): Promise<unknown>;
  /** Makes sure that there is a session that listens. */
  keep(): Promise<unknown>;
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
  #isKept = false;

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
      await sleep(this.#dependencies.clock, GATHER_MS);
      this.#isWanted = false;
      await this.#dependencies.announce().catch(() => {});
    }
    this.#isSending = false;
  }

  /** A notification has arrived. */
  heard(): void {
    for (const wake of this.#wakes) wake();
  }

  /** Calls `wake` at each hint, until the returned function is called. */
  async listen(wake: () => boolean): Promise<() => void> {
    this.#wakes.add(wake);
    // If this fails, it is tried again regularly.
    await this.#dependencies.keep().catch(() => {});
    if (!this.#isKept) void this.#keep();
    return () => void this.#wakes.delete(wake);
  }

  async #keep(): Promise<void> {
    this.#isKept = true;
    while (this.#wakes.size > 0) {
      await sleep(this.#dependencies.clock, KEEP_MS);
      if (this.#wakes.size > 0) await this.#dependencies.keep().catch(() => {});
    }
    this.#isKept = false;
  }
}
