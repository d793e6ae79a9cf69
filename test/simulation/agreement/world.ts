/** A store under test, as two processes have it, on a clock that is moved by hand. */

import type { RecordStore } from "../../../packages/core/src/inbox/contract/store.ts";
import { sendCanary } from "../../../packages/core/src/testing/store/canaries.ts";
import { type Environment, environmentOf } from "../../../packages/core/src/time/environment.ts";
import type { By } from "./history.ts";

/** When each history begins: so late that nothing expires by a clock that is not the history's. */
export const START: number = Date.UTC(2100, 0, 1);

/**
 * When the history begins, stores with replicas have known their primary for this long, since a new primary is not trusted at
 * once.
 */
const OPENED_BEFORE_MS = 60_000;

/** Makes stores on data of their own. */
export interface Place {
  /** A store on these data, not open yet. If only one process can open the data, the same store again. */
  connect(): RecordStore;
  /** Sets the store's clock. */
  setTime(now: number): void | Promise<void>;
  /** Removes the data; every store has been closed by then. */
  close(): void | Promise<void>;
}

/** A kind of store. */
export interface Kind {
  readonly name: string;
  /** Finished events are on its lists. */
  readonly listsFinished: boolean;
  /** A time that is further away than it was when it was written counts as due. */
  readonly distrustsClock: boolean;
  /** A take gives the oldest of a part of all that is due. */
  readonly takesOfParts?: boolean;
  /** For how long a record that is written counts as due at most, in milliseconds. Default: for as long as it says. */
  readonly dueWithinMs?: number;
  make(): Place | Promise<Place>;
}

/** One kind of store in one history. */
export class World {
  readonly kind: Kind;
  readonly #place: Place;
  readonly #stores: [RecordStore, RecordStore];
  readonly #datasetId: string;

  private constructor(kind: Kind, place: Place, stores: [RecordStore, RecordStore]) {
    this.kind = kind;
    this.#place = place;
    this.#stores = stores;
    this.#datasetId = stores[0].datasetId;
  }

  static async make(kind: Kind): Promise<World> {
    const place = await kind.make();
    await place.setTime(START - OPENED_BEFORE_MS);
    const stores: [RecordStore, RecordStore] = [place.connect(), place.connect()];
    for (const store of stores) {
      await store.open();
      if (store.replicated !== undefined) await sendCanary(store);
    }
    await place.setTime(START);
    return new World(kind, place, stores);
  }

  store(by: By): RecordStore {
    return this.#stores[by];
  }

  async setTime(now: number): Promise<void> {
    await this.#place.setTime(now);
  }

  /** True when the new process finds the data that it has known. */
  async reopen(by: By): Promise<boolean> {
    await this.#stores[by].close();
    const store = this.#place.connect();
    await store.open();
    this.#stores[by] = store;
    return store.datasetId === this.#datasetId;
  }

  async close(): Promise<void> {
    for (const store of new Set(this.#stores)) await store.close();
    await this.#place.close();
  }
}

/** An environment whose clock stands still between two times that it is given. */
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
