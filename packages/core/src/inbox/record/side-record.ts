/**
 * A side record has no slots, so it is about no event. Every store keeps it like any other record, but no list and no
 * count includes it. It has a content of its own, which is stored where a record of events has its fixed facts. Some
 * other fields, too, have another meaning in each of the four kinds:
 *
 * | kind                   | `id`                         | content                                       | `lease`         | `isClosed`                    |
 * | ---------------------- | ---------------------------- | --------------------------------------------- | --------------- | ----------------------------- |
 * | a claim of a reference | the key of the owner         | `token`: identifies this opening of the claim | none            | false while the claim is open |
 * | a subject              | the latest event's id        | when each unfinished event last began         | that of its run | true                          |
 * | a canary               | filling, so that it is large | empty                                         | while it is due | true                          |
 * | a shared text          | empty                        | `text`: the text                              | none            | true                          |
 *
 * `signedAt` is the signed time of the event behind the record, if there is one. A side record is forgotten at
 * `expiresAt`, unless it is leased, or `isClosed` is false.
 */
import type { IdempotencyRecord } from "./record.ts";

export type SideContent = Readonly<Record<string, string>>;

interface SideFields
  extends Pick<
    IdempotencyRecord,
    "flow" | "tenant" | "id" | "isClosed" | "lease" | "signedAt" | "expiresAt"
  > {
  readonly content: SideContent;
}

export function sideRecord({ content, ...fields }: SideFields): IdempotencyRecord {
  return { ...fields, statusSlot: null, fixedFacts: content, slots: {} };
}

export function contentOf({ fixedFacts }: IdempotencyRecord): SideContent {
  return fixedFacts;
}

export function setContent(record: IdempotencyRecord, content: SideContent): void {
  record.fixedFacts = content;
}
