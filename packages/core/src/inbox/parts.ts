import type { Happening } from "../notices/notice.ts";
import { Stopwatch } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import { Acts } from "./acts.ts";
import type { Changes } from "./changes.ts";
import { Claims } from "./claims.ts";
import type { RecordStore } from "./store.ts";

const HIDE_MS = 5_000;

/** What the parts of one inbox share. */
export class InboxParts {
  readonly store: RecordStore;
  readonly environment: Environment;
  readonly changes: Changes;
  readonly claims: Claims;
  readonly leaseMs: number;
  /** What this process can do with the store, as far as it has tried lately. */
  readonly acts: Acts;
  /** Passes notices that concern the whole inbox to its observer. */
  notify: (notice: Happening) => void = () => {};
  /** `close` was called, so nothing more is begun. */
  isClosing = false;
  /** The process is about to end, so failed writes are no longer repeated. */
  isAbandoned = false;

  constructor(store: RecordStore, environment: Environment, changes: Changes, leaseMs: number) {
    this.store = store;
    this.environment = environment;
    this.changes = changes;
    this.leaseMs = leaseMs;
    this.claims = new Claims(changes, leaseMs);
    this.acts = new Acts(environment, (notice) => this.notify(notice));
  }

  /**
   * How long a record that was taken is hidden from other processes. Within this time, the process that took it writes that it
   * begins a run. If the store's answer got lost on the way, the record can be taken again after this time.
   */
  get hideMs(): number {
    return Math.min(this.leaseMs, HIDE_MS);
  }

  /** How often a lease is renewed. */
  get renewEveryMs(): number {
    return this.leaseMs / 3;
  }

  stopwatch(): Stopwatch {
    return new Stopwatch(this.environment);
  }
}
