import { createHmac, timingSafeEqual } from "node:crypto";
import type { VerifyingSecret } from "./keys.ts";

const SIGNATURE_HEADER_PATTERN = /^sha256=[0-9a-f]{64}$/;

/**
 * True for a well-formed `X-Connect-Signature`. A repeated header, which is joined by a comma, is not (specification,
 * Authentication, 3).
 */
export function isSignatureHeader(header: unknown): header is string {
  return typeof header === "string" && SIGNATURE_HEADER_PATTERN.test(header);
}

/**
 * The secret under which the header is the HMAC-SHA256 of the raw bytes, or null. The header must be well formed. Every secret
 * is compared, in constant time, so that the time does not reveal which secret came close.
 */
export function findSecret(
  rawBody: Uint8Array,
  header: string,
  secrets: readonly VerifyingSecret[],
): VerifyingSecret | null {
  const claimed = Buffer.from(header.slice("sha256=".length));
  let matchingSecret: VerifyingSecret | null = null;
  for (const candidate of secrets) {
    const digest = createHmac("sha256", candidate.key).update(rawBody).digest("hex");
    if (timingSafeEqual(Buffer.from(digest), claimed)) matchingSecret = candidate;
  }
  return matchingSecret;
}
