import type { FlowName } from "../../protocol/events.ts";
import type { VerifiedEvent } from "./event.ts";
import { type IdempotencyRecord, isUnfinished } from "./record.ts";

/**
 * Which transaction has a reference (`oneSuccessPerReference`). The claim is a record without slots, whose `id` is the key of the
 * transaction's own record. It is written before that one. If the process dies in between, the next copy of the event finds its
 * own claim and passes.
 *
 * While its event is unfinished, the claim is open (`terminal` is false) and never expires. Once the event has ended, the claim is
 * kept as long as the event's record.
 */
export interface ReferenceClaim {
  /** The key of the claim's record. */
  readonly key: string;
  /** The key of the record that claims. */
  readonly owner: string;
  readonly flow: FlowName;
  readonly tenant: string;
  readonly signedAt: number | null;
  readonly retentionMs: number;
  /** False if the event has ended already: a copy of it makes the claim last longer, but does not open it. */
  readonly opens: boolean;
}

/** Who has a reference now. */
export interface Claimed {
  /** The key of a record. */
  readonly owner: string;
  /** Whether the claim is so old that its owner may have been forgotten. */
  readonly isOld: boolean;
  /** The claim to write; null if the stored one stays as it is. */
  readonly record: IdempotencyRecord | null;
}

/** The claim of an event, whose own slot is `slot` if the record has it; null if it claims no reference. */
export function claimOf(
  event: VerifiedEvent,
  record: IdempotencyRecord | null,
  slot: string,
): ReferenceClaim | null {
  const { key, referenceKey, signedAt, retentionMs } = event;
  if (referenceKey === null) return null;
  const { flow, tenant } = event.delivery;
  const known = record?.slots[slot];
  const opens = known === undefined || isUnfinished(known);
  return { key: referenceKey, owner: key, flow, tenant, signedAt, retentionMs, opens };
}

/** Claims a reference, unless somebody else has it. `forgotten`: a record that is known to be gone, so that it has nothing. */
export function claimReference(
  found: IdempotencyRecord | null,
  claim: ReferenceClaim,
  now: number,
  forgotten: string | null,
): Claimed {
  const isOld = found !== null && found.expiresAt <= now;
  const record = isOld && found.id === forgotten ? null : found;
  if (record !== null && record.id !== claim.owner) return { owner: record.id, isOld, record: null };
  const { owner, flow, tenant, retentionMs, opens } = claim;
  const signedAt = Math.max(record?.signedAt ?? 0, claim.signedAt ?? 0);
  const terminal = !opens && (record?.terminal ?? true);
  if (record !== null && signedAt === record.signedAt && terminal === record.terminal) {
    return { owner, isOld: false, record: null };
  }
  const expiresAt = Math.max(record?.expiresAt ?? 0, Math.max(now, signedAt) + retentionMs);
  const nothing = { statusSlot: null, identity: {}, lease: null, slots: {} };
  return {
    owner,
    isOld: false,
    record: { flow, tenant, id: owner, ...nothing, terminal, signedAt, expiresAt },
  };
}

/** Lets a claim expire together with its owner's record. Null if nothing has to be written. */
export function closeClaim(
  record: IdempotencyRecord | null,
  owner: string,
  expiresAt: number,
): IdempotencyRecord | null {
  if (record === null || record.id !== owner || record.terminal) return null;
  return { ...record, terminal: true, expiresAt: Math.max(record.expiresAt, expiresAt) };
}

/** True while an unfinished event of the record has the reference. */
export function needsClaim({ slots }: IdempotencyRecord, key: string): boolean {
  return Object.values(slots).some(({ work }) => work?.reference === key);
}
