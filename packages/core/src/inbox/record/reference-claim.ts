import type { FlowName } from "../../protocol/events.ts";
import type { VerifiedEvent } from "./event.ts";
import { type IdempotencyRecord, isFinished, isUnfinished } from "./record.ts";
import { contentOf, sideRecord } from "./side-record.ts";

/** A claim is kept for a little longer than its owner, because the owner is written after the claim. */
const CLAIM_EXTRA_MS = 60_000;
const NO_CLAIMS: readonly ReferenceClaim[] = [];

/**
 * The transaction that has a reference (`oneSuccessPerReference`). A claim is a [side record](side-record.ts). Its `id`
 * is the key of its owner: the transaction's own record. The claim is written before the owner. If the process dies in
 * between, the next copy of the event finds that the claim is its own, and is accepted.
 *
 * **No claim ends before its owner.** As long as anything in the owner is unfinished, its claims are open (`isClosed`
 * is false), and an open claim never expires. When everything in the owner is finished, one more write for each claim
 * lets the claim expire with the owner. If a finished record is to live longer, its claims are extended first.
 *
 * Each opening of a claim has a token, which is stored in the claim and in its owner. The write that lets a claim
 * expire names the token that the finished owner had. So it does not change a claim that was opened again meanwhile,
 * for an event that the owner is about to record.
 */
export interface ReferenceClaim {
  /** The key of the claim's record. */
  readonly key: string;
  /** The key of the record that claims. */
  readonly owner: string;
  readonly flow: FlowName;
  readonly tenant: string;
  /** When the owner expires; null while the owner has an unfinished event, or is about to record one. */
  readonly until: number | null;
  /** When the event that claims was signed; 0 if the event has no signed time. */
  readonly signedAt: number;
  /** If an open claim is older than this, the inbox first checks whether its owner still exists. */
  readonly retentionMs: number;
  /** The token with which a write may be about to let the claim expire; null if no write can. The token is not used again. */
  readonly spentToken: string | null;
}

/** The holder of a reference. */
export interface ClaimResult {
  /** The key of a record. */
  readonly owner: string;
  /** The token of the claim. */
  readonly token: string;
  /** True if the claim is so old that its owner may have been forgotten. */
  readonly isOld: boolean;
  /** The claim to write; null if the stored one stays as it is. */
  readonly record: IdempotencyRecord | null;
}

/** The claims of a record in which nothing is unfinished, and when it expires. */
export interface FinishedClaims {
  readonly claims: Readonly<Record<string, string>>;
  readonly expiresAt: number;
}

/**
 * The claim of an event whose own slot is `slot` if the record has it. Null if it claims no reference, or if the record has the
 * reference already.
 */
export function claimOf(
  event: VerifiedEvent,
  record: IdempotencyRecord | null,
  slot: string,
  now: number,
): ReferenceClaim | null {
  const { referenceKey } = event;
  if (referenceKey === null || record?.claims?.[referenceKey] !== undefined) return null;
  const existingSlot = record?.slots[slot];
  const opens =
    existingSlot === undefined || isUnfinished(existingSlot) || record === null || !isFinished(record);
  const until = opens ? null : Math.max(record.expiresAt, claimExpiryOf(event, now)) + CLAIM_EXTRA_MS;
  return claimFor(event, referenceKey, until, null);
}

/** The claim of an event that runs; null if it claims no reference. */
export function claimAtRun(event: VerifiedEvent): ReferenceClaim | null {
  return event.referenceKey === null ? null : claimFor(event, event.referenceKey, null, null);
}

/**
 * The claims of a finished record, if a write is about to make the record live longer than its claims. `after` is the
 * record to write.
 */
export function claimsToProlong(
  before: FinishedClaims | null,
  after: IdempotencyRecord,
  event: VerifiedEvent,
): readonly ReferenceClaim[] {
  if (before === null) return NO_CLAIMS;
  const until = isFinished(after) ? after.expiresAt : null;
  if (until !== null && until <= before.expiresAt) return NO_CLAIMS;
  const longer = until === null ? null : until + CLAIM_EXTRA_MS;
  return Object.entries(before.claims).map(([key, token]) => claimFor(event, key, longer, token));
}

function claimFor(
  event: VerifiedEvent,
  key: string,
  until: number | null,
  spentToken: string | null,
): ReferenceClaim {
  const { flow, tenant } = event.delivery;
  const { retentionMs, signedAt } = event;
  return { key, owner: event.key, flow, tenant, until, retentionMs, signedAt: signedAt ?? 0, spentToken };
}

/** True if the claim that was taken is enough for the claim that is wanted now. */
export function satisfiesClaim(
  heldClaim: ReferenceClaim,
  token: string,
  wantedClaim: ReferenceClaim,
): boolean {
  if (wantedClaim.until === null) return heldClaim.until === null && token !== wantedClaim.spentToken;
  return heldClaim.until === null || heldClaim.until + CLAIM_EXTRA_MS >= wantedClaim.until;
}

function claimExpiryOf(
  { signedAt, retentionMs }: Pick<VerifiedEvent, "signedAt" | "retentionMs">,
  now: number,
): number {
  return Math.max(now, signedAt ?? 0) + retentionMs;
}

/** The other facts that decide about a claim. */
export interface ClaimContext {
  /** The store's clock. */
  readonly now: number;
  /** The token of the claim if it is opened now. */
  readonly token: string;
  /** A record that is known to be gone, so it owns no claim. */
  readonly forgottenOwner: string | null;
}

/** Claims a reference, unless another record has it. */
export function claimReference(
  storedRecord: IdempotencyRecord | null,
  claim: ReferenceClaim,
  { now, token, forgottenOwner }: ClaimContext,
): ClaimResult {
  const { owner, flow, tenant, until, spentToken } = claim;
  const isOld = storedRecord !== null && storedRecord.expiresAt <= now;
  const current = isOld && storedRecord.id === forgottenOwner ? null : storedRecord;
  if (current !== null && current.id !== owner) {
    return { owner: current.id, token: tokenOf(current), isOld, record: null };
  }
  const resultWith = (
    token: string,
    change: Pick<IdempotencyRecord, "isClosed" | "expiresAt"> | null,
  ): ClaimResult => {
    const signedAt = Math.max(current?.signedAt ?? 0, claim.signedAt);
    const record =
      change && sideRecord({ flow, tenant, id: owner, content: { token }, lease: null, signedAt, ...change });
    return { owner, token, isOld: false, record };
  };
  const expiresAt = Math.max(current?.expiresAt ?? 0, until ?? claimExpiryOf(claim, now));
  if (until === null) {
    // An old claim is written again, because another process may have found meanwhile that its owner does not exist.
    const isOpened = current !== null && !current.isClosed && !isOld && tokenOf(current) !== spentToken;
    return isOpened ? resultWith(tokenOf(current), null) : resultWith(token, { isClosed: false, expiresAt });
  }
  if (current === null) return resultWith(token, { isClosed: true, expiresAt });
  const isLater = expiresAt > current.expiresAt;
  return resultWith(tokenOf(current), isLater ? { isClosed: current.isClosed, expiresAt } : null);
}

/** Lets a claim expire, together with its owner. Null if it was opened again, or if nothing has to be written. */
export function closeClaim(
  storedRecord: IdempotencyRecord | null,
  token: string,
  expiresAt: number,
): IdempotencyRecord | null {
  if (storedRecord === null || storedRecord.isClosed || tokenOf(storedRecord) !== token) return null;
  return { ...storedRecord, isClosed: true, expiresAt: Math.max(storedRecord.expiresAt, expiresAt) };
}

function tokenOf(record: IdempotencyRecord): string {
  return contentOf(record).token ?? "";
}

/** Notes in a record that it has a claim, with the token that the claim has. False if it was noted before. */
export function noteClaim(record: IdempotencyRecord, key: string, token: string): boolean {
  if (record.claims?.[key] === token) return false;
  record.claims = { ...record.claims, [key]: token };
  return true;
}

/** Removes from a record a claim that another record has by now. False if the record had no such claim. */
function dropClaim(record: IdempotencyRecord, key: string): boolean {
  if (record.claims?.[key] === undefined) return false;
  const { [key]: _, ...others } = record.claims;
  record.claims = others;
  return true;
}

/**
 * Updates the claims in a record, whose key is `key`: adds those that the record holds, and removes those that other
 * records hold. `holders` has the keys of the claims as its keys. False if nothing has changed.
 */
export function noteHolders(
  record: IdempotencyRecord,
  key: string,
  holders: ReadonlyMap<string, Pick<ClaimResult, "owner" | "token">>,
): boolean {
  let isChanged = false;
  for (const [claim, { owner, token }] of holders) {
    const hasChanged = owner === key ? noteClaim(record, claim, token) : dropClaim(record, claim);
    isChanged ||= hasChanged;
  }
  return isChanged;
}

/** The claims of a record; null if it has none, or something in it is unfinished. */
export function finishedClaimsOf(record: IdempotencyRecord): FinishedClaims | null {
  const { claims, expiresAt } = record;
  return claims !== undefined && isFinished(record) ? { claims, expiresAt } : null;
}
