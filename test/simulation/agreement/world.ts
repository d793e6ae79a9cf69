/** A store under test in two processes, on a clock that is moved by hand. */

import type { RecordStore } from "../../../packages/core/src/inbox/contract/store.ts";
import { sendCanary } from "../../../packages/core/src/testing/store/canaries.ts";
import { type Environment, environmentOf } from "../../../packages/core/src/time/environment.ts";
import type { ProcessNumber } from "./history.ts";

/** The time when each history begins. It is so late that nothing expires by any other clock. */
export const START: number = Date.UTC(2100, 0, 1);

/** Stores are opened this long before a history begins, because a new primary is not trusted at once. */
const OPENED_BEFORE_MS = 60_000;

/** Fresh data of one kind of store. */
export interface Dataset {
  /** Makes a store on these data, not open yet. If only one process can use the data, each call returns the same store. */
  connect(): RecordStore;
  /** Sets the store's clock. */
  setTime(now: number): void | Promise<void>;
  /** Removes the data; every store has been closed by then. */
  close(): void | Promise<void>;
}

/** A kind of store. */
export interface Kind {
  readonly name: string;
  /** Its lists can contain finished events. */
  readonly listsFinished: boolean;
  /** A due time that is further away than when it was written counts as reached. */
  readonly distrustsClock: boolean;
  /** A poll takes the oldest records of some shards. */
  readonly takesPerShard?: boolean;
  /** A record that is written counts as due for at most this long, in milliseconds. Default: without a limit. */
  readonly dueWithinMs?: number;
  make(): Dataset | Promise<Dataset>;
}

/** One kind of store in one history. */
export class World {
  readonly kind: Kind;
  readonly #dataset: Dataset;
  readonly #stores: [RecordStore, RecordStore];
  readonly #datasetId: string;

  private constructor(kind: Kind, dataset: Dataset, stores: [RecordStore, RecordStore]) {
    this.kind = kind;
    this.#dataset = dataset;
    this.#stores = stores;
    this.#datasetId = stores[0].datasetId;
  }

  static async make(kind: Kind): Promise<World> {
    const dataset = await kind.make();
    await dataset.setTime(START - OPENED_BEFORE_MS);
    const stores: [RecordStore, RecordStore] = [dataset.connect(), dataset.connect()];
    for (const store of stores) {
      await store.open();
      if (store.replicated !== undefined) await sendCanary(store);
    }
    await dataset.setTime(START);
    return new World(kind, dataset, stores);
  }

  store(by: ProcessNumber): RecordStore {
    return this.#stores[by];
  }

  async setTime(now: number): Promise<void> {
    await this.#dataset.setTime(now);
  }

  /** Replaces one process by another. True if the datasetId stays the same. */
  async reopen(by: ProcessNumber): Promise<boolean> {
    await this.#stores[by].close();
    const store = this.#dataset.connect();
    await store.open();
    this.#stores[by] = store;
    return store.datasetId === this.#datasetId;
  }

  async close(): Promise<void> {
    for (const store of new Set(this.#stores)) await store.close();
    await this.#dataset.close();
  }
}

/** An environment whose clock moves only when `setTime` is called. */
export function handMovedClock(): {
  readonly clock: Environment;
  readonly setTime: (now: number) => void;
} {
  let now = START;
  return {
    clock: { ...environmentOf(), now: () => now, monotonic: () => now },
    setTime(time) {
      now = time;
    },
  };
}
