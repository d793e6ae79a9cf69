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
const CANARY_DOUBT_MS = 60_000;
/** A failure counts for this long after it was last seen, in a process that does not try the operation any more. */
const UNTRIED_FAILURE_MS = 60_000;

class Evidence {
  readonly stall: Stall;
  /** Since the last success, of an event or of a canary. */
  sinceSuccess: Stopwatch | null = null;
  /** Since the last failure, of an event, of a canary or of a poll. */
  sinceFailure: Stopwatch | null = null;
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
  readonly #evidence: Readonly<Record<StoreOperation, Evidence>>;
  #isClosed = false;

  constructor(environment: Environment, notify: (notice: UndatedNotice) => void) {
    this.#environment = environment;
    const newEvidence = (operation: StoreOperation): Evidence =>
      new Evidence(new Stall(operation, environment, notify));
    this.#evidence = { accept: newEvidence("accept"), take: newEvidence("take"), end: newEvidence("end") };
  }

  /** The first operation that fails, and why; null if all of them work, as far as this process knows. */
  get failing(): { readonly operation: StoreOperation; readonly cause: unknown } | null {
    for (const operation of STORE_OPERATIONS) {
      const failing = this.#evidence[operation].stall.failure;
      if (failing !== null) return { operation, cause: failing.cause };
    }
    return null;
  }

  /** The longest time since one of these operations last succeeded, in milliseconds. */
  silentMs(operations: readonly StoreOperation[]): number {
    return Math.max(
      ...operations.map(
        (operation) => this.#evidence[operation].sinceSuccess?.elapsedMs ?? Number.POSITIVE_INFINITY,
      ),
    );
  }

  recordSuccess(operation: StoreOperation): void {
    const evidence = this.#evidence[operation];
    evidence.sinceSuccess = new Stopwatch(this.#environment);
    endFailure(evidence);
  }

  /**
   * This process does not try the operation now, so no success can end its failure. The failure ends once it has not been seen
   * for a while.
   */
  forgetOldFailure(operation: StoreOperation): void {
    const evidence = this.#evidence[operation];
    const { sinceFailure } = evidence;
    if (sinceFailure !== null && sinceFailure.elapsedMs >= UNTRIED_FAILURE_MS) endFailure(evidence);
  }

  recordFailure(operation: StoreOperation, cause: unknown): void {
    if (this.#isClosed || isClosingError(cause)) return;
    const evidence = this.#evidence[operation];
    if (evidence.isContradicted) evidence.doubt = new Stopwatch(this.#environment);
    evidence.hasFailed = true;
    evidence.sinceFailure = new Stopwatch(this.#environment);
    evidence.stall.recordFailure(cause);
  }

  recordCanarySuccess(operation: StoreOperation): void {
    const evidence = this.#evidence[operation];
    evidence.sinceSuccess = new Stopwatch(this.#environment);
    const { failure: failing } = evidence.stall;
    if (failing === null) return;
    evidence.isContradicted = evidence.hasFailed;
    if (failing.isReported && evidence.hasFailed && !evidence.hasCanaryFailed)
      evidence.doubt ??= new Stopwatch(this.#environment);
    if (evidence.doubt !== null && evidence.doubt.elapsedMs < CANARY_DOUBT_MS) return;
    evidence.hasCanaryFailed = false;
    evidence.doubt = null;
    evidence.stall.recordSuccess();
  }

  /** A canary, or a poll for due events, has failed. */
  recordCanaryFailure(operation: StoreOperation, cause: unknown): void {
    if (this.#isClosed || isClosingError(cause)) return;
    const evidence = this.#evidence[operation];
    evidence.hasCanaryFailed = true;
    evidence.sinceFailure = new Stopwatch(this.#environment);
    evidence.stall.recordFailure(cause);
  }

  /** From now on, there are no notices. */
  close(): void {
    this.#isClosed = true;
    for (const operation of STORE_OPERATIONS) this.#evidence[operation].stall.forget();
  }
}

function endFailure(evidence: Evidence): void {
  evidence.hasFailed = false;
  evidence.isContradicted = false;
  evidence.hasCanaryFailed = false;
  evidence.doubt = null;
  evidence.stall.recordSuccess();
}

function isClosingError(cause: unknown): boolean {
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
