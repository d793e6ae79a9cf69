import { FifoQueue } from "../../collections/fifo-queue.ts";
import { LANES, type Lane, type Lanes, otherLane } from "../record/lane.ts";

export class LaneQueues<T extends { readonly lane: Lane }> {
  readonly #queues: Lanes<FifoQueue<T>> = {
    usual: new FifoQueue(),
    patient: new FifoQueue(),
  };
  /** The lane from which the next entry is taken, if it has one. */
  #turn: Lane = "usual";

  isEmpty(lane: Lane): boolean {
    return this.#queues[lane].size === 0;
  }

  push(entry: T): void {
    this.#queues[entry.lane].push(entry);
  }

  /** Takes the next entry. If there is a place for either lane, it takes from both in turn. */
  next(isFree: (lane: Lane) => boolean): T | undefined {
    const first = this.#turn;
    for (const lane of [first, otherLane(first)]) {
      const entry = isFree(lane) ? this.#queues[lane].shift() : undefined;
      if (entry === undefined) continue;
      this.#turn = otherLane(lane);
      return entry;
    }
    return undefined;
  }

  /** Takes entries from the head of each queue, up to the first that is not wanted. */
  *takeWhile(isWanted: (entry: T) => boolean): Generator<T> {
    for (const lane of LANES) {
      const queue = this.#queues[lane];
      for (let entry = queue.peek(); entry !== undefined && isWanted(entry); entry = queue.peek()) {
        queue.shift();
        yield entry;
      }
    }
  }

  takeAll(): Generator<T> {
    return this.takeWhile(() => true);
  }
}
