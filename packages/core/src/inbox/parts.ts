import { Stopwatch } from "../clock.ts";
import type { Environment } from "../environment.ts";
import type { Changes } from "./changes.ts";
import type { RecordStore } from "./store.ts";

const HIDE_MS = 5_000;

/** What the parts of one inbox share. */
export class InboxParts {
  readonly store: RecordStore;
  readonly environment: Environment;
  readonly changes: Changes;
  readonly leaseMs: number;
  /** `close` was called: nothing more is begun. */
  isClosing = false;
  /** The process is about to end: nothing is repeated any more. */
  isAbandoned = false;

  constructor(store: RecordStore, environment: Environment, changes: Changes, leaseMs: number) {
    this.store = store;
    this.environment = environment;
    this.changes = changes;
    this.leaseMs = leaseMs;
  }

  /**
   * For how long a record that was taken is hidden from others: until its begin is written, or, where the answer of the
   * store got lost on the way, until it can be taken again.
   */
  get hideMs(): number {
    return Math.min(this.leaseMs, HIDE_MS);
  }

  stopwatch(): Stopwatch {
    return new Stopwatch(this.environment);
  }
}
