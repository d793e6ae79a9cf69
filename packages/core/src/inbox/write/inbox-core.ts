import type { UndatedNotice } from "../../notices/notice.ts";
import { Stopwatch } from "../../time/clock.ts";
import type { Environment } from "../../time/environment.ts";
import type { RecordStore } from "../contract/store.ts";
import { Claims } from "./claims.ts";
import type { Records } from "./records.ts";
import { StoreOperations } from "./store-operations.ts";

const HIDE_MS = 5_000;
/** Leases get longer only if the store's answer takes at least this share of a lease. */
const QUICK_ANSWER_SHARE = 1 / 8;
/** A store counts as no slower than this, in leases for an answer. */
const MAX_ANSWER_LEASES = 2;

/** Shared by the classes of one inbox: its store, its records, its clock, and whether it is closing. */
export class InboxCore {
  readonly store: RecordStore;
  readonly environment: Environment;
  readonly records: Records;
  readonly claims: Claims;
  readonly leaseMs: number;
  /** The operations that this process can do with the store, as far as it has tried lately. */
  readonly operations: StoreOperations;
  /** Passes notices that concern the whole inbox to its observer. */
  notify: (notice: UndatedNotice) => void = () => {};
  /** How long the store has lately taken to answer a write that begins a run, in milliseconds. */
  #answerMs = 0;
  /** `close` was called, so nothing more is begun. */
  isClosing = false;
  /** The process is about to end, so failed writes are no longer repeated. */
  isAbandoned = false;

  constructor(store: RecordStore, environment: Environment, records: Records, leaseMs: number) {
    this.store = store;
    this.environment = environment;
    this.records = records;
    this.leaseMs = leaseMs;
    this.claims = new Claims(records, store, environment, leaseMs);
    this.operations = new StoreOperations(environment, (notice) => this.notify(notice));
  }

  /**
   * How long a taken record is hidden from other processes. Within this time, the process that took the record writes
   * the beginning of a run. If the store's answer got lost, the record can be taken again after this time.
   */
  get hideMs(): number {
    return Math.min(this.leaseMs, HIDE_MS);
  }

  /**
   * The length of a lease that is written now. Until a slow store's answer arrives, up to twice the answer's time
   * counts as passed. So the lease is longer by that much. Otherwise it could be over before a handler is called.
   */
  get nextLeaseMs(): number {
    const isQuick = this.#answerMs < this.leaseMs * QUICK_ANSWER_SHARE;
    return this.leaseMs + (isQuick ? 0 : 2 * this.#answerMs);
  }

  /** The store has taken this long to answer a write that begins a run. */
  recordLatency(ms: number): void {
    this.#answerMs = Math.min(Math.max(ms, this.#answerMs / 2), this.leaseMs * MAX_ANSWER_LEASES);
  }

  /** How often a lease is renewed. */
  get renewEveryMs(): number {
    return this.leaseMs / 3;
  }

  stopwatch(): Stopwatch {
    return new Stopwatch(this.environment);
  }
}
