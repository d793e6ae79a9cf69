import { PayhooksError } from "../../protocol/errors.ts";
import type { Stopwatch } from "../../time/clock.ts";
import type { InboxCore } from "../write/inbox-core.ts";

/** The parts of the engine that measure the time of a lease. */
type LeaseDependencies = Pick<InboxCore, "store" | "stopwatch" | "nextLeaseMs" | "recordLatency">;

/** A write that makes or renews a lease, when it is sent. */
export interface LeaseWrite {
  /** Measures the time since then. */
  readonly since: Stopwatch;
  /** The length of the lease that the write makes. */
  readonly leaseMs: number;
}

/** How long the lease of a run still lasts, on this process's clock and on the store's. */
export class LeaseTime {
  readonly #key: string;
  readonly #dependencies: LeaseDependencies;
  #lastWrite: LeaseWrite;
  /** The end of the lease, on the store's clock. */
  #endsAt = 0;
  /** The lease was dated too early by at most this much. */
  #behindMs = 0;

  constructor(key: string, dependencies: LeaseDependencies) {
    this.#key = key;
    this.#dependencies = dependencies;
    this.#lastWrite = this.startWrite();
  }

  /** Starts to measure a write that makes or renews the lease. A renewal counts once it is given to {@link onRenewed}. */
  startWrite(): LeaseWrite {
    return { since: this.#dependencies.stopwatch(), leaseMs: this.#dependencies.nextLeaseMs };
  }

  /** The write that makes the lease is about to be sent, so its time counts from now on. Returns how long the lease lasts. */
  beginLease(): number {
    this.#lastWrite = this.startWrite();
    return this.lengthMs;
  }

  /** The write that makes the lease was answered. `storeTime`: the store's time, as the write had it. */
  onLeaseWritten(storeTime: number): void {
    this.#dependencies.recordLatency(this.elapsedMs);
    this.onRenewed(this.#lastWrite, storeTime);
  }

  /** A write that renews the lease was answered. */
  onRenewed(write: LeaseWrite, storeTime: number): void {
    this.#lastWrite = write;
    this.#endsAt = storeTime + write.leaseMs;
    this.#behindMs = this.#elapsedOnStoreMs();
  }

  /** How long the lease has lasted on this process's clock. */
  get elapsedMs(): number {
    return this.#lastWrite.since.elapsedMs;
  }

  get lengthMs(): number {
    return this.#lastWrite.leaseMs;
  }

  /** True if another process may take the event, because the lease has ended on this process's clock or on the store's. */
  get isOver(): boolean {
    return this.elapsedMs + this.#updateBehindMs() >= this.lengthMs;
  }

  /**
   * How much sooner the lease ends than the clock of this process shows. The process has dated the lease by its
   * estimate of the store's time, and the estimate may have been too early. The answer to the write has the store's
   * time, but does not show how long the write was on its way. So the whole difference to the store's time counts, in
   * addition to the time since the write was sent. This counts the time of the write twice. That is safe, because the
   * lease ends too early rather than too late. A later answer may show a larger difference.
   */
  #updateBehindMs(): number {
    this.#behindMs = Math.max(this.#behindMs, this.#elapsedOnStoreMs() - this.elapsedMs);
    return this.#behindMs;
  }

  /** How long the lease has lasted on the store's clock, as far as this process knows. */
  #elapsedOnStoreMs(): number {
    try {
      return Math.max(0, this.#dependencies.store.now(this.#key) - (this.#endsAt - this.lengthMs));
    } catch {
      // If the store cannot tell its time, only this process's clock decides.
      return 0;
    }
  }
}

/** The error of a run whose lease was over too soon. */
export function leaseExpiredError(): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    "The lease of a run was over before a handler was to be called, so the handler was not called. The event is tried again.",
    {
      fix: "Check whether the store takes seconds to answer, and whether this process was stopped for a while.",
    },
  );
}
