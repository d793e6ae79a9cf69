import type { TransactionStatus } from "../wire.ts";

/** One step on a transaction's status path. */
export interface Step {
  readonly status: TransactionStatus;
  /** The time since the step before, or since the start. Default: the sandbox's `delayMs`. */
  readonly afterMs?: number | undefined;
  /** The transaction's message. Default: a text for the status. For FAILED, it is one of the medium's texts. */
  readonly message?: string | undefined;
  /**
   * If false, no callback is sent. CANCELLED sends one only if the names of the deployment have a word for it, because
   * callbacks do not have that status.
   */
  readonly callback?: boolean | undefined;
}
