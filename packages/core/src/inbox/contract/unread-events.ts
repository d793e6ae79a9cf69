import type { PayhooksError } from "../../protocol/errors.ts";

/** Events that are there, and were left out since their records cannot be read. */
export interface UnreadEvents {
  /**
   * How many there are. Null if that is not known: a search by a text, such as a reference, finds no event that is sealed with a key
   * which this process does not have.
   */
  readonly count: number | null;
  /** Why one of them cannot be read, and what to do about it. Its `cause` says if that is the seal. */
  readonly error: PayhooksError;
}
