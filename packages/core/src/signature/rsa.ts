import { verify } from "node:crypto";
import type { VerifyingKey } from "./keys.ts";

/**
 * Decodes canonical base64: standard alphabet, padding, no white space, no spare bits. So each signature has only one spelling.
 *
 * @returns null for any other text.
 */
export function decodeCanonicalBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, "base64");
  // Decoding is lenient, but encoding is not: any other spelling of these bytes differs from their encoding.
  return bytes.toString("base64") === text ? bytes : null;
}

/** The key under which `signature` is an RSA PKCS#1 v1.5 signature of the SHA-256 of `data`, or null. */
export function findRsaKey(
  data: Uint8Array,
  signature: Uint8Array,
  keys: readonly VerifyingKey[],
): VerifyingKey | null {
  for (const candidate of keys) {
    if (signature.length === candidate.modulusBytes && verify("sha256", data, candidate.key, signature)) {
      return candidate;
    }
  }
  return null;
}
