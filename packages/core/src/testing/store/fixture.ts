/** What the contract of stores runs on. */
import type { RecordStore } from "../../inbox/store.ts";

/** Fresh data for one test, with the stores of as many processes as the test likes. */
export interface StoreFixture {
  /**
   * Makes the store of one more process on this data. The test opens it. Where only one process can have the data, each
   * call returns the same store.
   */
  connect(): RecordStore;
  /** Lets so many milliseconds pass on the store's clock. With a real clock it waits; no test asks for more than 2 s. */
  advance(ms: number): Promise<void>;
  /** Removes the data. Every store that was connected has been closed by then. */
  close(): Promise<void>;
}

/** In what stores may differ. A trait that is left out is one that the store does not have. */
export interface StoreTraits {
  /** `takeDue` finds the records that wait longest of all. A store without it finds the longest waiting of a part. */
  readonly oldestOfAll?: boolean;
  /** `list` finds finished events when the filter asks for the state `done`. */
  readonly listsFinished?: boolean;
  /** `find` finds events by what they name, finished ones too. */
  readonly finds?: boolean;
  /** A write with `announce` wakes other processes through `onDue`. */
  readonly announces?: boolean;
  /** A due time further away than when it was written was set by a wrong clock: the record counts as due. */
  readonly distrustsClock?: boolean;
  /** `scan` finds every record. */
  readonly scans?: boolean;
}

/** One behaviour that every store has, or every store with a trait. */
export interface StoreCase {
  readonly name: string;
  readonly needs?: keyof StoreTraits;
  readonly run: (rig: StoreRig) => Promise<void>;
}

type MakeFixture = () => StoreFixture | Promise<StoreFixture>;

/** The processes of one case. */
export class StoreRig {
  readonly #fixture: StoreFixture;
  readonly #make: MakeFixture;
  readonly #connected = new Set<RecordStore>();
  readonly #others: StoreRig[] = [];

  private constructor(fixture: StoreFixture, make: MakeFixture) {
    this.#fixture = fixture;
    this.#make = make;
  }

  static async on(make: MakeFixture): Promise<StoreRig> {
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
    const store = this.#fixture.connect();
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
    return this.#fixture.advance(ms);
  }

  /** Closes one process's store, as its end would. */
  async end(store: RecordStore): Promise<void> {
    if (this.#connected.delete(store)) await store.close();
  }

  async close(): Promise<void> {
    for (const other of this.#others) await other.close();
    for (const store of this.#connected) await this.end(store);
    await this.#fixture.close();
  }
}
