import { PayhooksError } from "../../protocol/errors.ts";
import type { Environment } from "../../time/environment.ts";
import type { RecordStore, Swap, SwapResult, VersionedRecord } from "../contract/store.ts";

/** A write that waits for the end of the turn. */
interface WaitingWrite {
  readonly item: Swap;
  readonly resolve: (result: SwapResult) => void;
}

/** A read that waits for the end of the turn. */
interface WaitingRead {
  readonly key: string;
  readonly resolve: (found: VersionedRecord | null) => void;
  readonly fail: (error: unknown) => void;
}

/** Reads and writes records. All writes of one turn of the event loop go to the store in one call, and so do all reads. */
export class BatchedStore {
  readonly #store: RecordStore;
  readonly #environment: Environment;
  readonly #onWritten: (item: Swap) => void;
  #writes: WaitingWrite[] = [];
  #reads: WaitingRead[] = [];
  #isScheduled = false;
  #isClosed = false;

  /** @param onWritten called for each write that the store has confirmed */
  constructor(store: RecordStore, environment: Environment, onWritten: (item: Swap) => void) {
    this.#store = store;
    this.#environment = environment;
    this.#onWritten = onWritten;
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

  /** Never rejects: an error of the store is the result `unknown`. */
  write(item: Swap): Promise<SwapResult> {
    return new Promise((resolve) => {
      this.#writes.push({ item, resolve });
      this.#schedule();
    });
  }

  read(key: string): Promise<VersionedRecord | null> {
    return new Promise((resolve, fail) => {
      this.#reads.push({ key, resolve, fail });
      this.#schedule();
    });
  }

  /** Sends everything that was gathered to the store at the end of this turn. A store that answers at once gets it at once. */
  #schedule(): void {
    if (this.#store.immediate === true) {
      this.#flush();
      return;
    }
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#environment.nextTurn(() => {
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
      const cause = closedMeanwhileError();
      for (const { resolve } of writes) resolve({ kind: "not-written", cause });
      for (const { fail } of reads) fail(cause);
      return;
    }
    if (writes.length > 0) void this.#writeAll(writes);
    if (reads.length > 0) void this.#readAll(reads);
  }

  /** Resolves the requests in their order. So of events that are begun together, the oldest starts first. */
  async #writeAll(batch: readonly WaitingWrite[]): Promise<void> {
    const sorted = batch.length === 1 ? batch : batch.toSorted((a, b) => (a.item.key < b.item.key ? -1 : 1));
    let results: readonly SwapResult[];
    try {
      results = await this.#store.swap(sorted.map(({ item }) => item));
    } catch (cause) {
      for (const { resolve } of batch) resolve({ kind: "unknown", cause });
      return;
    }
    const resultOf = new Map(sorted.map((writing, index) => [writing, results[index] ?? NO_ANSWER_RESULT]));
    for (const [{ item }, { kind }] of resultOf) if (kind === "written") this.#onWritten(item);
    for (const writing of batch) writing.resolve(resultOf.get(writing) ?? NO_ANSWER_RESULT);
  }

  async #readAll(batch: readonly WaitingRead[]): Promise<void> {
    const keys = [...new Set(batch.map(({ key }) => key))];
    try {
      const records = await this.#store.read(keys);
      const byKey = new Map(keys.map((key, index) => [key, records[index] ?? null]));
      for (const { key, resolve } of batch) resolve(byKey.get(key) ?? null);
    } catch (error) {
      for (const { fail } of batch) fail(error);
    }
  }
}

const NO_ANSWER_RESULT: SwapResult = { kind: "unknown", cause: new Error("the store gave no result") };

/** The error of a call that the close of its inbox did not wait for. */
export function closedMeanwhileError(): PayhooksError {
  return new PayhooksError("ERR_CLOSING", "The inbox was closed before its store had answered.", {
    fix: "Give close() more time. Deliveries that were not acknowledged are sent again.",
  });
}
