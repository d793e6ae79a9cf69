import { constants, verify } from "node:crypto";
import type { Keys } from "../flows/keys.ts";
import { checkChoice, checkNames } from "../protocol/check-names.ts";
import { invalidOptionError } from "../protocol/errors.ts";
import { keyedVerifier } from "./keyed-verifier.ts";
import { importKeysOf, type PublicKeyAlgorithm, type PublicVerifyingKey } from "./keys.ts";
import { SIGNED_OPTION_NAMES, type SignedOptions, type SignedText, signedTextReader } from "./signed-text.ts";
import type { Verifier } from "./verifier.ts";

/** Options of {@link publicKeySignature}. */
export interface PublicKeySignatureOptions extends SignedOptions {
  /** PEM text, a JWK as JSON, a certificate, or the 32 bytes of an Ed25519 key in hex or base64. */
  readonly key: Keys<string>;
  /** It is never taken from the request. ECDSA signatures may be in DER or as two numbers of 32 bytes. */
  readonly algorithm: PublicKeyAlgorithm;
}

/**
 * Verifies a signature with a public key.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for options that leave open what is signed. The key is checked at the start.
 * @example
 * ```ts
 * publicKeySignature({
 *   header: "x-signature-ed25519",
 *   over: "{timestamp}{body}",
 *   timestamp: { header: "x-signature-timestamp" },
 *   algorithm: "ed25519",
 *   key: process.env.CHAT_PUBLIC_KEY,
 * });
 * ```
 */
export function publicKeySignature(options: PublicKeySignatureOptions): Verifier {
  checkNames("publicKeySignature", options, {
    ...SIGNED_OPTION_NAMES,
    key: true,
    algorithm: true,
  });
  const { key, algorithm } = options;
  if (algorithm === undefined)
    throw invalidOptionError(
      "publicKeySignature has no algorithm.",
      "Name the one that the sender signs with.",
    );
  checkChoice("algorithm of publicKeySignature", algorithm, {
    "rsa-sha256": true,
    "rsa-pss-sha256": true,
    "ecdsa-sha256": true,
    ed25519: true,
  });
  const load = (givenKeys: Parameters<typeof importKeysOf>[0], option: string) =>
    importKeysOf(givenKeys, option, algorithm);
  return keyedVerifier(
    { keys: key, name: "key", load, refusal: "the signature fits none of the keys" },
    signedTextReader("publicKeySignature", options),
    (text, keys) => findKey(text, keys, algorithm),
  );
}

function findKey(
  { parts, signatures }: SignedText,
  keys: readonly PublicVerifyingKey[],
  algorithm: PublicKeyAlgorithm,
): PublicVerifyingKey | null {
  const data = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
  for (const candidate of keys) {
    if (signatures.some((signature) => fits(data, signature, candidate, algorithm))) return candidate;
  }
  return null;
}

function fits(
  data: Buffer,
  signature: Buffer,
  { key }: PublicVerifyingKey,
  algorithm: PublicKeyAlgorithm,
): boolean {
  switch (algorithm) {
    case "rsa-sha256":
      return verify("sha256", data, key, signature);
    case "rsa-pss-sha256":
      return verify(
        "sha256",
        data,
        { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 },
        signature,
      );
    case "ecdsa-sha256":
      return (
        verify("sha256", data, key, signature) ||
        (signature.length % 2 === 0 && verify("sha256", data, { key, dsaEncoding: "ieee-p1363" }, signature))
      );
    case "ed25519":
      return verify(null, data, key, signature);
  }
}
