import type { InboxParts } from "./parts.ts";
import { isUnreadable } from "./record/codec.ts";
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
  readonly #parts: InboxParts;

  constructor(parts: InboxParts) {
    this.#parts = parts;
  }

  /** Claims a reference, unless somebody else has it. */
  async take(claim: ReferenceClaim, onFailure?: OnFailure): Promise<Holder> {
    const first = await this.#ask(claim, null, onFailure);
    if (!first.isOld) return first;
    // A claim outlives its owner if a process died before it could let the claim expire.
    const [owner = null] = await this.#parts.store.read([first.owner]);
    return owner === null ? this.#ask(claim, first.owner, onFailure) : first;
  }

  #ask(
    claim: ReferenceClaim,
    forgotten: string | null,
    onFailure?: OnFailure,
  ): Promise<Holder & Pick<Claimed, "isOld">> {
    return new Promise((resolve, reject) => {
      this.#parts.changes.ask<Claimed>({
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
    const { store, changes, leaseMs } = this.#parts;
    const [found = null] = await store.read([owner]);
    if (found === null || isUnreadable(found.record) || needsClaim(found.record, key)) return;
    const { expiresAt } = found.record;
    await changes.change({
      key,
      deadlineMs: leaseMs,
      step: (record) => ({ answer: undefined, record: closeClaim(record, owner, expiresAt) }),
    });
  }
}
