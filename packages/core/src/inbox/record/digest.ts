import { sha256 } from "../../signature/sha256.ts";

const DIGEST_CHARS = 10;

/** A fact in 11 characters, to be compared with: what differs has another digest, but for one chance in 2^60. */
export function digestOf(fact: string): string {
  return `#${sha256(fact, "base64url").slice(0, DIGEST_CHARS)}`;
}

/** Whether a fact may be a digest. A fact of its own that looks like one counts as one. */
export function isDigest(fact: string): boolean {
  return fact.length === DIGEST_CHARS + 1 && fact.startsWith("#");
}

/** The same facts, long ones as digests. */
export function digested(facts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const short: Record<string, string> = {};
  for (const [field, fact] of Object.entries(facts)) {
    short[field] = fact.length > DIGEST_CHARS + 1 ? digestOf(fact) : fact;
  }
  return short;
}
