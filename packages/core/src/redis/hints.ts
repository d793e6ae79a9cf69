import type { Cluster, Redis } from "ioredis";
import { type Clock, sleep } from "../time/clock.ts";
import type { Group } from "./groups.ts";
import { HINT_SCRIPT } from "./scripts.ts";

/** The most hints that wait for a listener. Each wakes one process, which takes as much as it has room for. */
const MAX_HINTS = 16;
/** How long hints last. Older hints are worthless, because every process has polled by then. */
const HINT_TTL_MS = 1_000;
/** How long one command waits for a hint; ioredis gives up on a connection that is silent for much longer. */
const BLOCK_TIMEOUT_S = 5;
const ERROR_PAUSE_MS = 250;
/** Hints within this time are sent together. */
const GATHER_DELAY_MS = 5;
/** A process without a free place listens again after this time. */
const BUSY_PAUSE_MS = 100;

/**
 * Tells other processes that something is due. A hint wakes only the process that has listened for the longest time.
 * No call waits for a hint, and nothing relies on it.
 */
export class Hints {
  readonly #key: string;
  readonly #group: Group;
  readonly #clock: Clock;
  readonly #wakes = new Set<() => boolean>();
  #wantedCount = 0;
  #isSending = false;
  #isWaiting = false;

  /** @param key the list of hints, which belongs to a shard of `group` */
  constructor(key: string, group: Group, clock: Clock) {
    this.#key = key;
    this.#group = group;
    this.#clock = clock;
  }

  /** Sends this many hints. While a command is under way, further hints are gathered. */
  send(count: number): void {
    this.#wantedCount = Math.min(MAX_HINTS, this.#wantedCount + count);
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    while (this.#wantedCount > 0) {
      const count = this.#wantedCount;
      this.#wantedCount = 0;
      await this.#group.run(HINT_SCRIPT, [this.#key], [count, MAX_HINTS, HINT_TTL_MS]).catch(() => {});
      await sleep(this.#clock, GATHER_DELAY_MS);
    }
    this.#isSending = false;
  }

  /** Calls back at each hint that this process gets. If it has no place, the hint goes to another process. */
  listen(connection: Redis | Cluster, wake: () => boolean): () => void {
    this.#wakes.add(wake);
    if (!this.#isWaiting) void this.#wait(connection);
    return () => void this.#wakes.delete(wake);
  }

  async #wait(connection: Redis | Cluster): Promise<void> {
    this.#isWaiting = true;
    while (this.#wakes.size > 0 && connection.status !== "end") {
      try {
        const hint = await connection.blpop(this.#key, BLOCK_TIMEOUT_S);
        if (hint === null) continue;
        const isTaken = [...this.#wakes].map((wake) => wake()).includes(true);
        if (isTaken) continue;
        this.send(1);
        await sleep(this.#clock, BUSY_PAUSE_MS);
      } catch {
        await sleep(this.#clock, ERROR_PAUSE_MS);
      }
    }
    this.#isWaiting = false;
  }
}
