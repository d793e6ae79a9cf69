import type { Changes } from "./changes.ts";
import type { IdempotencyRecord } from "./record/record.ts";
import {
  type Claimed,
  claimReference,
  closeClaim,
  needsClaim,
  type ReferenceClaim,
} from "./record/reference-claim.ts";

const DEADLINE_MS = 2_000;

/** Who has a reference, and the claim as it is stored. */
export interface Holder {
  /** The key of a record. */
  readonly owner: string;
  readonly claim: { readonly key: string; readonly version: string } | null;
}

/** Is told why the store did not answer. */
type OnFailure = (cause: unknown) => void;

/** The references that events have claimed (`oneSuccessPerReference`). */
export class Claims {
  readonly #changes: Changes;
  readonly #leaseMs: number;

  constructor(changes: Changes, leaseMs: number) {
    this.#changes = changes;
    this.#leaseMs = leaseMs;
  }

  /** Claims a reference, unless somebody else has it. */
  async take(claim: ReferenceClaim, onFailure?: OnFailure): Promise<Holder> {
    const first = await this.#ask(claim, null, onFailure);
    if (!first.isOld) return first;
    // A claim outlives its owner if a process died before it could let the claim expire.
    return (await this.#read(first.owner)) === null ? this.#ask(claim, first.owner, onFailure) : first;
  }

  #ask(
    claim: ReferenceClaim,
    forgotten: string | null,
    onFailure?: OnFailure,
  ): Promise<Holder & Pick<Claimed, "isOld">> {
    return new Promise((resolve, reject) => {
      this.#changes.ask<Claimed>({
        key: claim.key,
        deadlineMs: DEADLINE_MS,
        onFailure,
        guess: null,
        step: (record, now) => {
          const answer = claimReference(record, claim, now, forgotten);
          return { answer, record: answer.record };
        },
        settle: (outcome) => {
          if (!outcome.ok) return reject(outcome.error);
          const { owner, isOld } = outcome.answer;
          const { version } = outcome;
          resolve({ owner, isOld, claim: version === null ? null : { key: claim.key, version } });
        },
      });
    });
  }

  /**
   * Lets a claim expire with the record of the event that had it, if no other event of the record needs it. If that fails, the
   * claim stays, and the next one who wants the reference asks whether its owner still exists.
   */
  async eventEnded(key: string, owner: string): Promise<void> {
    const record = await this.#read(owner);
    if (record === null || needsClaim(record, key)) return;
    const { expiresAt } = record;
    await this.#changes.change({
      key,
      deadlineMs: this.#leaseMs,
      step: (claim) => ({ answer: undefined, record: closeClaim(claim, owner, expiresAt) }),
    });
  }

  /** Reads a record. Once the inbox is closed, this fails as a write would. */
  #read(key: string): Promise<IdempotencyRecord | null> {
    const step = (record: IdempotencyRecord | null) => ({ answer: record, record: null });
    return this.#changes.change({ key, deadlineMs: DEADLINE_MS, step });
  }
}
