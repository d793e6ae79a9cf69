import type { VerifiedEvent } from "./event.ts";
import type { IdempotencyRecord } from "./record.ts";

/**
 * Claims a reference for the event's id (`oneSuccessPerReference`), and returns who has it: the key of a record. The claim is a
 * record without slots, which is written before the event's own. If the process dies in between, the next copy of the event
 * finds its own claim and passes. It is kept as long as the event's record, counted from its acceptance.
 */
export function claimReference(
  record: IdempotencyRecord | null,
  event: VerifiedEvent,
  now: number,
): { readonly answer: string; readonly record: IdempotencyRecord | null } {
  if (record !== null && record.id !== event.key) return { answer: record.id, record: null };
  const signedAt = Math.max(record?.signedAt ?? 0, event.signedAt ?? 0);
  const expiresAt = Math.max(record?.expiresAt ?? 0, Math.max(now, signedAt) + event.retentionMs);
  if (record !== null && signedAt === record.signedAt) return { answer: event.key, record: null };
  const { flow, tenant } = event.delivery;
  return {
    answer: event.key,
    record: {
      flow,
      tenant,
      id: event.key,
      status: null,
      statusSlot: null,
      terminal: false,
      identity: {},
      lease: null,
      slots: {},
      signedAt,
      expiresAt,
    },
  };
}
