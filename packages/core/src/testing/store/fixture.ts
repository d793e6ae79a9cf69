/** The parts that the contract of stores needs of a store under test. */
import type { RecordStore } from "../../inbox/contract/store.ts";

/** Fresh data for one test, with the stores of any number of processes. */
export interface StoreFixture {
  /**
   * Makes the store of one more process on this data. The test opens it. If only one process can use the data, each call
   * returns the same store.
   */
  connect(): RecordStore;
  /** Lets `ms` milliseconds pass on the store's clock. With a real clock, it waits. No test asks for more than 2 s. */
  advance(ms: number): Promise<void>;
  /** Removes the data. Every store that was connected has been closed by then. */
  close(): Promise<void>;
}

/** How stores may differ. The store does not have the traits that are left out. */
export interface StoreTraits {
  /**
   * `takeDue` takes the records that have waited longest of all. Without this trait, it takes those that have waited longest in
   * one part of the store.
   */
  readonly oldestOfAll?: boolean;
  /** `list` finds finished events if the filter asks for the state `finished` or `any`. */
  readonly listsFinished?: boolean;
  /** A write with `announce` wakes other processes through `onDue`. */
  readonly announces?: boolean;
  /** If a due time is further away than when it was written, a wrong clock has set it. The record then counts as due. */
  readonly distrustsClock?: boolean;
  /** `scan` finds every record. */
  readonly scans?: boolean;
}

/** A behaviour that every store must have, or every store with a trait. */
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

  /** A rig on other data. */
  async onOtherData(): Promise<StoreRig> {
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

  /** The store of one more process, opened. */
  async open(): Promise<RecordStore> {
    const store = this.connect();
    await store.open();
    return store;
  }

  advance(ms: number): Promise<void> {
    return this.#fixture.advance(ms);
  }

  /** Closes the store of one process, as if the process ended. */
  async end(store: RecordStore): Promise<void> {
    if (this.#connected.delete(store)) await store.close();
  }

  async close(): Promise<void> {
    for (const other of this.#others) await other.close();
    for (const store of this.#connected) await this.end(store);
    await this.#fixture.close();
  }
}
