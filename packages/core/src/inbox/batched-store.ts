import { PayhooksError } from "../protocol/errors.ts";
import { isPending } from "../time/awaitable.ts";
import type { Environment } from "../time/environment.ts";
import type { RecordStore, Swap, SwapResult, Versioned } from "./store.ts";

/** The answer to a read of one record. */
export type ReadResult = { readonly current: Versioned | null } | { readonly error: unknown };

/** A write to send. */
interface Sending {
  readonly item: Swap;
  readonly done: (result: SwapResult) => void;
}

/** A record to read. */
interface Reading {
  readonly key: string;
  readonly done: (result: ReadResult) => void;
}

/** Reads and writes records. All writes of one turn of the event loop go to the store in one call, and so do all reads. */
export class BatchedStore {
  readonly #store: RecordStore;
  readonly #environment: Environment;
  readonly #written: (item: Swap) => void;
  #writes: Sending[] = [];
  #reads: Reading[] = [];
  #isScheduled = false;
  #isClosed = false;

  /** @param written called for each write that the store has confirmed */
  constructor(store: RecordStore, environment: Environment, written: (item: Swap) => void) {
    this.#store = store;
    this.#environment = environment;
    this.#written = written;
  }

  /** True once the store is left alone. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Leaves the store alone from now on. Writes are not made and reads fail, both with `ERR_CLOSING`. */
  close(): void {
    this.#isClosed = true;
  }

  /** The store's time for a record. Throws if the store cannot tell. */
  now(key: string): number {
    return this.#store.now(key);
  }

  write(item: Swap, done: (result: SwapResult) => void): void {
    this.#writes.push({ item, done });
    this.#schedule();
  }

  read(key: string, done: (result: ReadResult) => void): void {
    this.#reads.push({ key, done });
    this.#schedule();
  }

  /** Everything that was gathered goes to the store at the end of this turn. A store that answers at once gets it at once. */
  #schedule(): void {
    if (this.#store.immediate === true) {
      this.#flush();
      return;
    }
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#environment.soon(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    const writes = this.#writes;
    const reads = this.#reads;
    this.#writes = [];
    this.#reads = [];
    if (this.#isClosed) {
      const cause = closedMeanwhile();
      for (const { done } of writes) done({ kind: "not-written", cause });
      for (const { done } of reads) done({ error: cause });
      return;
    }
    if (writes.length > 0) this.#writeAll(writes);
    if (reads.length > 0) this.#readAll(reads);
  }

  #writeAll(batch: readonly Sending[]): void {
    const sorted = batch.length === 1 ? batch : batch.toSorted((a, b) => (a.item.key < b.item.key ? -1 : 1));
    /** Answers in the order of the requests, so that events that are begun together start with the oldest. */
    const tell = (results: readonly SwapResult[]): void => {
      const found = new Map(sorted.map((sending, at) => [sending, results[at]]));
      sorted.forEach(({ item }, at) => {
        if (results[at]?.kind === "written") this.#written(item);
      });
      for (const sending of batch) sending.done(found.get(sending) ?? NO_ANSWER);
    };
    const lost = (cause: unknown): void => {
      for (const { done } of sorted) done({ kind: "unknown", cause });
    };
    let swapping: ReturnType<RecordStore["swap"]>;
    try {
      swapping = this.#store.swap(sorted.map(({ item }) => item));
    } catch (error) {
      lost(error);
      return;
    }
    if (isPending(swapping)) swapping.then(tell, lost);
    else tell(swapping);
  }

  #readAll(batch: readonly Reading[]): void {
    const keys = [...new Set(batch.map(({ key }) => key))];
    const tell = (found: readonly (Versioned | null)[]): void => {
      const byKey = new Map(keys.map((key, at) => [key, found[at] ?? null]));
      for (const { key, done } of batch) done({ current: byKey.get(key) ?? null });
    };
    const fail = (error: unknown): void => {
      for (const { done } of batch) done({ error });
    };
    let reading: ReturnType<RecordStore["read"]>;
    try {
      reading = this.#store.read(keys);
    } catch (error) {
      fail(error);
      return;
    }
    if (isPending(reading)) reading.then(tell, fail);
    else tell(reading);
  }
}

const NO_ANSWER: SwapResult = { kind: "unknown", cause: new Error("the store gave no result") };

function closedMeanwhile(): PayhooksError {
  return new PayhooksError("ERR_CLOSING", "The inbox was closed before its store had answered.", {
    fix: "Give close() more time. Deliveries that were not acknowledged are sent again.",
  });
}
