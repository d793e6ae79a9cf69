import type { FlowName } from "../../protocol/events.ts";
import { sha256 } from "../../signature/sha256.ts";

/** The tenant of all records if keys do not depend on one. */
export const ONLY_TENANT: string = "";

/** The first hex digits of a hash of several texts. Different lists of texts are hashed differently. */
export function hashOf(parts: readonly string[], hexDigits: number): string {
  return sha256(JSON.stringify(parts), "hex").slice(0, hexDigits);
}

/** The key of the record of one transaction or webhook. */
export function recordKeyFor(tenant: string, flow: FlowName, id: string): string {
  return hashOf([tenant, flow, id], 32);
}

/** The key of the record that orders the events of one subject. */
export function subjectKeyFor(tenant: string, flow: FlowName, subject: string): string {
  return hashOf([tenant, flow, "subject", subject], 32);
}

/**
 * The key of the record that says which transaction has a reference (`oneSuccessPerReference`). The reference is given
 * as its label, since an event keeps only that.
 */
export function claimKeyFor(tenant: string, flow: FlowName, event: string, referenceLabel: string): string {
  return hashOf([tenant, flow, "reference", event, referenceLabel], 32);
}
