import type { UndatedNotice } from "../../notices/notice.ts";
import { Stall } from "../../notices/stall.ts";
import { isPayhooksError } from "../../protocol/errors.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { Stopwatch } from "../../time/clock.ts";
import type { Environment } from "../../time/environment.ts";

/** The operations on an event that need the store: accept it, take it when it is due, and write how its run ended. */
export type StoreOperation = "accept" | "take" | "end";

const STORE_OPERATIONS: readonly StoreOperation[] = ["accept", "take", "end"];

/** If events fail although canaries succeed, canaries do not count for this long. */
const DOUBT_MS = 60_000;

class Evidence {
  readonly stall: Stall;
  /** Since the last success, of an event or of a canary. */
  sinceSuccess: Stopwatch | null = null;
  /** An event has failed, and none has succeeded since. */
  hasFailed = false;
  /** A canary has succeeded since that event failed. */
  isContradicted = false;
  /** Since the operation began to fail, a canary has failed, too. */
  hasCanaryFailed = false;
  /** When an event and a canary contradicted each other. Until an event succeeds, canaries do not count for a while. */
  doubt: Stopwatch | null = null;

  constructor(stall: Stall) {
    this.stall = stall;
  }
}

/**
 * The operations that this process can do with its store, as events and canaries have shown lately.
 *
 * An event counts for more than a canary, because its write includes search labels. The first canary that succeeds
 * after a failure ends that failure. If an event then fails again, canaries no longer count: the failure ends with an
 * event that succeeds, or after a minute in which no event has failed. The same applies if failing events were reported
 * before the first canary. Otherwise the failure would be reported as over, then reported again.
 */
export class StoreOperations {
  readonly #environment: Environment;
  readonly #of: Readonly<Record<StoreOperation, Evidence>>;
  #isClosed = false;

  constructor(environment: Environment, notify: (notice: UndatedNotice) => void) {
    this.#environment = environment;
    const evidence = (operation: StoreOperation): Evidence =>
      new Evidence(new Stall(operation, environment, notify));
    this.#of = { accept: evidence("accept"), take: evidence("take"), end: evidence("end") };
  }

  /** The first operation that fails, and why; null if all of them work, as far as this process knows. */
  get failing(): { readonly operation: StoreOperation; readonly cause: unknown } | null {
    for (const operation of STORE_OPERATIONS) {
      const failing = this.#of[operation].stall.failing;
      if (failing !== null) return { operation, cause: failing.cause };
    }
    return null;
  }

  /** The longest time since one of these operations last succeeded, in milliseconds. */
  silentMs(operations: readonly StoreOperation[]): number {
    return Math.max(
      ...operations.map(
        (operation) => this.#of[operation].sinceSuccess?.elapsedMs ?? Number.POSITIVE_INFINITY,
      ),
    );
  }

  succeeded(operation: StoreOperation): void {
    const evidence = this.#of[operation];
    evidence.sinceSuccess = new Stopwatch(this.#environment);
    evidence.hasFailed = false;
    evidence.isContradicted = false;
    evidence.hasCanaryFailed = false;
    evidence.doubt = null;
    evidence.stall.succeeded();
  }

  failed(operation: StoreOperation, cause: unknown): void {
    if (this.#isClosed || isClosing(cause)) return;
    const evidence = this.#of[operation];
    if (evidence.isContradicted) evidence.doubt = new Stopwatch(this.#environment);
    evidence.hasFailed = true;
    evidence.stall.failed(cause);
  }

  canarySucceeded(operation: StoreOperation): void {
    const evidence = this.#of[operation];
    evidence.sinceSuccess = new Stopwatch(this.#environment);
    const { failing } = evidence.stall;
    if (failing === null) return;
    evidence.isContradicted = evidence.hasFailed;
    if (failing.isTold && evidence.hasFailed && !evidence.hasCanaryFailed)
      evidence.doubt ??= new Stopwatch(this.#environment);
    if (evidence.doubt !== null && evidence.doubt.elapsedMs < DOUBT_MS) return;
    evidence.hasCanaryFailed = false;
    evidence.doubt = null;
    evidence.stall.succeeded();
  }

  /** A canary, or a poll for due events, has failed. */
  canaryFailed(operation: StoreOperation, cause: unknown): void {
    if (this.#isClosed || isClosing(cause)) return;
    this.#of[operation].hasCanaryFailed = true;
    this.#of[operation].stall.failed(cause);
  }

  /** From now on, there are no notices. */
  close(): void {
    this.#isClosed = true;
    for (const operation of STORE_OPERATIONS) this.#of[operation].stall.end();
  }
}

function isClosing(cause: unknown): boolean {
  return isPayhooksError(cause) && cause.code === "ERR_CLOSING";
}

/** In words: what fails, and why. */
export function describeFailure(operation: StoreOperation, cause: unknown): string {
  const words = describeError(cause);
  switch (operation) {
    case "accept":
      return words;
    case "take":
      return `events that are due cannot be taken: ${words}`;
    case "end":
      return `the end of a run cannot be written: ${words}`;
  }
}
