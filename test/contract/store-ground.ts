/** What the contract of stores is run on. */
import type { RecordStore } from "../../packages/core/src/inbox/store.ts";

/** Fresh data, and ways to it. */
export interface StoreGround {
  /** A store on this data for one more process, not opened yet. Where only one process can have it, the same store. */
  connect(): RecordStore;
  /** Lets so many milliseconds pass on the store's clock. Where time is real it waits; no case asks for more than 2 s. */
  advance(ms: number): Promise<void>;
  /** Removes the data. Every store that was connected has been closed by then. */
  close(): Promise<void>;
}

/** Makes a ground with nothing on it yet. */
export type MakeStoreGround = () => StoreGround | Promise<StoreGround>;

/** In what stores may differ. A case that needs one of these is declared only for a store that has it. */
export interface StoreTraits {
  /** A look finds the oldest of all that is due; otherwise the oldest of a part. */
  readonly oldestOfAll: boolean;
  /** Finished events are listed where the filter asks for the state `done`. */
  readonly listsFinished: boolean;
  /** Writes are announced to other processes. */
  readonly announces: boolean;
  /** A due time that is further away than when it was written comes from a wrong clock, and counts as due. */
  readonly distrustsClock: boolean;
}

/** One behaviour that every store has, or every store with a trait. */
export interface StoreCase {
  readonly name: string;
  readonly needs?: keyof StoreTraits;
  readonly run: (rig: StoreRig) => Promise<void>;
}

/** The processes of one case. */
export class StoreRig {
  readonly #ground: StoreGround;
  readonly #make: MakeStoreGround;
  readonly #connected = new Set<RecordStore>();
  readonly #others: StoreRig[] = [];

  private constructor(ground: StoreGround, make: MakeStoreGround) {
    this.#ground = ground;
    this.#make = make;
  }

  static async on(make: MakeStoreGround): Promise<StoreRig> {
    return new StoreRig(await make(), make);
  }

  /** The same on other data. */
  async elsewhere(): Promise<StoreRig> {
    const other = await StoreRig.on(this.#make);
    this.#others.push(other);
    return other;
  }

  /** The store of one more process. */
  connect(): RecordStore {
    const store = this.#ground.connect();
    this.#connected.add(store);
    return store;
  }

  /** The same, opened. */
  async open(): Promise<RecordStore> {
    const store = this.connect();
    await store.open();
    return store;
  }

  advance(ms: number): Promise<void> {
    return this.#ground.advance(ms);
  }

  /** Closes one process's store, as its end would. */
  async end(store: RecordStore): Promise<void> {
    if (this.#connected.delete(store)) await store.close();
  }

  async close(): Promise<void> {
    for (const other of this.#others) await other.close();
    for (const store of this.#connected) await this.end(store);
    await this.#ground.close();
  }
}
