/**
 * A canary: a [side record](side-record.ts) by which a process finds out whether its store does what an event needs. It
 * is written, due, taken and ended like an event. No list and no count includes it, because it has no slots.
 */
import type { IdempotencyRecord } from "./record.ts";
import { sideRecord } from "./side-record.ts";

/** The end of every canary's key. The key of an event's record has hex digits only. */
const CANARY_SUFFIX = ".canary";
/**
 * How long a canary is kept that is not due, if its process dies before it removes it. A canary that is due does not expire: it
 * stays until a process takes it.
 */
const CANARY_TTL_MS = 60_000;
/** As long as an event with all its fields, because a disk may have room for a line but not for an event. */
const PADDING_TEXT = ".".repeat(8_000);

/** The key of a canary, made of a text that no other canary has. */
export function canaryKey(token: string): string {
  return token + CANARY_SUFFIX;
}

export function isCanary(key: string): boolean {
  return key.endsWith(CANARY_SUFFIX);
}

/**
 * A canary as it is written. If it is to be taken, it is due at once, like a record whose lease has ended, and does not expire.
 * Otherwise it only expires.
 */
export function newCanary(now: number, isDue: boolean): IdempotencyRecord {
  return sideRecord({
    flow: "payments",
    tenant: "",
    id: PADDING_TEXT,
    isClosed: true,
    content: {},
    lease: isDue ? { slot: "", token: "", until: now, originalLengthMs: 0 } : null,
    signedAt: now,
    expiresAt: now + CANARY_TTL_MS,
  });
}

/** A canary that is over. Every store treats an expired record as absent. */
export function endCanary(canary: IdempotencyRecord, now: number): IdempotencyRecord {
  return { ...canary, id: "", lease: null, expiresAt: now - 1 };
}
