import type { Environment } from "../../time/environment.ts";
import type { RecordStore } from "../contract/store.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import {
  type ClaimResult,
  claimReference,
  closeClaim,
  type FinishedClaims,
  type ReferenceClaim,
} from "../record/reference-claim.ts";
import type { RecordChange, Records } from "./records.ts";

const CLAIM_DEADLINE_MS = 2_000;

/** The holder of a reference. */
export type ReferenceHolder = Pick<ClaimResult, "owner" | "token">;

/** Called with the reason when the store did not answer. */
type OnFailure = (cause: unknown) => void;

/** The references that records have claimed (`oneSuccessPerReference`). */
export class Claims {
  readonly #records: Records;
  readonly #store: RecordStore;
  readonly #environment: Environment;
  readonly #leaseMs: number;

  constructor(records: Records, store: RecordStore, environment: Environment, leaseMs: number) {
    this.#records = records;
    this.#store = store;
    this.#environment = environment;
    this.#leaseMs = leaseMs;
  }

  /**
   * Claims a reference, unless another transaction has it. Resolves when the replicas have the claim, if the store has
   * any. Otherwise a failover could lose the claim, and another event with the same reference would run.
   */
  async acquire(claim: ReferenceClaim, onFailure?: OnFailure): Promise<ReferenceHolder> {
    const first = await this.#tryClaim(claim, null, onFailure);
    if (!first.isOld) return first;
    // If a process died before it could let the claim expire, the claim outlives its owner.
    return (await this.#read(first.owner)) === null ? this.#tryClaim(claim, first.owner, onFailure) : first;
  }

  async #tryClaim(
    claim: ReferenceClaim,
    forgottenOwner: string | null,
    onFailure?: OnFailure,
  ): Promise<ClaimResult> {
    const claimToken = this.#environment.token();
    const { answer, version } = await this.#records.change<ClaimResult>({
      key: claim.key,
      deadlineMs: CLAIM_DEADLINE_MS,
      onFailure,
      guess: null,
      change: (record, now) => {
        const answer = claimReference(record, claim, { now, token: claimToken, forgottenOwner });
        return { answer, record: answer.record };
      },
    });
    if (answer.owner === claim.owner && version !== null)
      await this.#waitForReplicas(claim.key, version, onFailure);
    return answer;
  }

  async #waitForReplicas(key: string, version: string, onFailure?: OnFailure): Promise<void> {
    try {
      await this.#store.replicated?.([{ key, version }]);
    } catch (error) {
      onFailure?.(error);
      throw error;
    }
  }

  /**
   * Lets the claims of a finished record expire with the record. First it waits until the replicas have the record's
   * end, if the store has any: a failover that loses this end would make the record unfinished again. If this fails for
   * a claim, the claim stays. The next event that wants the reference then checks whether the owner still exists.
   *
   * @param version the owner, as it was written
   */
  async close(owner: string, version: string | null, { claims, expiresAt }: FinishedClaims): Promise<void> {
    if (version !== null) await this.#waitForReplicas(owner, version);
    const closing = Object.entries(claims).map(([key, token]) =>
      this.#records.change({
        key,
        deadlineMs: this.#leaseMs,
        change: (claim) => ({ answer: undefined, record: closeClaim(claim, token, expiresAt) }),
      }),
    );
    await Promise.all(closing);
  }

  /** Reads a record. Once the inbox is closed, this fails as a write would. */
  async #read(key: string): Promise<IdempotencyRecord | null> {
    const change: RecordChange<IdempotencyRecord | null> = (record) => ({ answer: record, record: null });
    const { answer } = await this.#records.change({ key, deadlineMs: CLAIM_DEADLINE_MS, change });
    return answer;
  }
}
