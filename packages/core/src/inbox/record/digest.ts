import { sha256 } from "../../signature/sha256.ts";

const DIGEST_CHARS = 10;

/**
 * A fact as 11 characters, which is enough to compare it. Two different facts have the same digest with a chance of 1 in 2^60.
 */
export function digestOf(fact: string): string {
  return `#${sha256(fact, "base64url").slice(0, DIGEST_CHARS)}`;
}

/** Whether a fact may be a digest. A fact that happens to look like one counts as one. */
export function isDigest(fact: string): boolean {
  return fact.length === DIGEST_CHARS + 1 && fact.startsWith("#");
}

/** The same facts, with digests in place of long ones. */
export function digested(facts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const short: Record<string, string> = {};
  for (const [field, fact] of Object.entries(facts)) {
    short[field] = fact.length > DIGEST_CHARS + 1 ? digestOf(fact) : fact;
  }
  return short;
}
