import { type Clock, sleep } from "../time/clock.ts";

/** Hints of this time travel as one. */
const GATHER_MS = 5;
/** A session that was lost is looked for so often while somebody listens. */
const KEEP_MS = 2_000;

/** What hints need of the session that they travel on. */
export interface HintWays {
  readonly clock: Clock;
  announce(): Promise<unknown>;
  /** Makes sure that there is a session which listens. */
  keep(): Promise<unknown>;
}

/**
 * Tells other processes that something is due, beside the statements that write it: a notification makes its commit wait for
 * the others of the whole server. Every process hears it; who has a place looks. None is waited for, and none is relied upon.
 */
export class Hints {
  readonly #ways: HintWays;
  readonly #wakes = new Set<() => boolean>();
  #isWanted = false;
  #isSending = false;
  #isKept = false;

  constructor(ways: HintWays) {
    this.#ways = ways;
  }

  /** Sends one, soon. While one is under way, further ones are gathered. */
  send(): void {
    this.#isWanted = true;
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    while (this.#isWanted) {
      await sleep(this.#ways.clock, GATHER_MS);
      this.#isWanted = false;
      await this.#ways.announce().catch(() => {});
    }
    this.#isSending = false;
  }

  /** A notification has come. */
  heard(): void {
    for (const wake of this.#wakes) wake();
  }

  /** Calls back at each hint, until its end. */
  async listen(wake: () => boolean): Promise<() => void> {
    this.#wakes.add(wake);
    // Afterwards it is tried again and again.
    await this.#ways.keep().catch(() => {});
    if (!this.#isKept) void this.#keep();
    return () => void this.#wakes.delete(wake);
  }

  async #keep(): Promise<void> {
    this.#isKept = true;
    while (this.#wakes.size > 0) {
      await sleep(this.#ways.clock, KEEP_MS);
      if (this.#wakes.size > 0) await this.#ways.keep().catch(() => {});
    }
    this.#isKept = false;
  }
}
