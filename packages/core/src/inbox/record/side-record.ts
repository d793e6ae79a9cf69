/**
 * A side record has no slots, so it is about no event. Every store keeps it like any other record, but no list and no count includes it.
 * Its fields mean something else in each of the four kinds:
 *
 * | kind                   | `id`                         | `identity`                                | `lease`         | `isClosed`                    |
 * | ---------------------- | ---------------------------- | ----------------------------------------- | --------------- | ----------------------------- |
 * | a claim of a reference | the key of the owner         | `token`: which opening of the claim it is | none            | false while the claim is open |
 * | a subject              | the latest event's id        | the events that have begun and not ended  | that of its run | true                          |
 * | a canary               | filling, so that it is large | empty                                     | while it is due | true                          |
 * | a shared text          | empty                        | `text`: the text                          | none            | true                          |
 *
 * `signedAt` is the signed time of the event behind the record, if there is one. A side record is forgotten at `expiresAt`, unless it is
 * leased, or `isClosed` is false.
 */
import type { IdempotencyRecord } from "./record.ts";

/** The fields that a side record uses. */
type SideFields = Omit<IdempotencyRecord, "statusSlot" | "slots" | "claims">;

/** Makes a side record. */
export function sideRecord(fields: SideFields): IdempotencyRecord {
  const { flow, tenant, id, isClosed, identity, lease, signedAt, expiresAt } = fields;
  return {
    flow,
    tenant,
    id,
    statusSlot: null,
    isClosed,
    identity,
    lease,
    slots: {},
    signedAt,
    expiresAt,
  };
}
