/**
 * The bare signature checks, for programs that do everything else themselves.
 *
 * **A valid signature is not a valid event.** The canonical string of payment callbacks is not escaped, so a
 * genuine signature also fits bodies that the service never sent (see {@link canonicalString}). To accept an event,
 * use `verifyPaymentCallback` of `@payhooks/core`, or a receiver.
 *
 * @module
 */
import { findSecret, isSignatureHeader } from "./hmac.ts";
import {
  importPublicKeys,
  importSecrets,
  type OneOrMore,
  type PublicKeyInput,
  type SecretInput,
} from "./keys.ts";
import { decodeCanonicalBase64, findRsaKey } from "./rsa.ts";

export { CALLBACK_FIELDS, type CanonicalValue, canonicalString } from "./canonical.ts";
export { importPublicKeys, importSecrets, type VerifyingKey, type VerifyingSecret } from "./keys.ts";

/**
 * Checks an RSA-2048 PKCS#1 v1.5 SHA-256 signature (specification, Authentication, 4). Hostile input gives null,
 * never an exception; a key that is not usable throws.
 *
 * @param data the canonical string, or its UTF-8 bytes.
 * @param signatureBase64 the field `signature`: canonical base64, as long as the key's modulus.
 * @param keys one public key or up to four, all of which are tried.
 * @returns the `keyId` of the key that matched, or null.
 * @throws PayhooksError a key code such as `ERR_KEY_TOO_SHORT` (see {@link importPublicKeys}).
 */
export function verifyRsaSignature(
  data: string | Uint8Array,
  signatureBase64: string,
  keys: OneOrMore<PublicKeyInput>,
): string | null {
  const imported = importPublicKeys(keys, "keys");
  const signature = typeof signatureBase64 === "string" ? decodeCanonicalBase64(signatureBase64) : null;
  if (signature === null || !isData(data)) return null;
  const bytes = typeof data === "string" ? Buffer.from(data, "utf8") : data;
  return findRsaKey(bytes, signature, imported)?.keyId ?? null;
}

/**
 * Checks the HMAC-SHA256 of a connected-account webhook (specification, Authentication, 3). Hostile input gives
 * null, never an exception; a secret that is not usable throws.
 *
 * @param rawBody the bytes exactly as they arrived.
 * @param header the value of `X-Connect-Signature`: `sha256=` and 64 lowercase hex digits.
 * @param secrets one webhook secret or up to four, all of which are compared: text, bytes or a secret `KeyObject`.
 * @returns the `keyId` of the secret that matched, or null.
 * @throws PayhooksError a code such as `ERR_SECRET_QUOTED` (see {@link importSecrets}).
 */
export function verifyHmacSignature(
  rawBody: Uint8Array,
  header: string | readonly string[] | null | undefined,
  secrets: OneOrMore<SecretInput>,
): string | null {
  const imported = importSecrets(secrets, "secrets");
  if (!isSignatureHeader(header) || !isData(rawBody)) return null;
  return findSecret(rawBody, header, imported)?.keyId ?? null;
}

/** True for text or bytes. Nothing else, such as a parsed body, can be signed. */
function isData(data: unknown): boolean {
  return typeof data === "string" || ArrayBuffer.isView(data);
}
