import { createHmac, timingSafeEqual } from "node:crypto";
import type { Keys } from "../flows/keys.ts";
import { checkChoice, checkNames } from "../protocol/check-names.ts";
import type { SecretInput, VerifyingSecret } from "../signature/keys.ts";
import { keyedVerifier } from "./keyed-verifier.ts";
import { importEncodedSecrets, type SecretEncoding } from "./keys.ts";
import { SIGNED_OPTION_NAMES, type SignedOptions, type SignedText, signedTextReader } from "./signed-text.ts";
import type { Verifier } from "./verifier.ts";

/** Options of {@link hmac}. */
export interface HmacOptions extends SignedOptions {
  readonly secret: Keys<SecretInput>;
  /** The encoding of the secret's text. Default `utf8`: its own bytes. With `base64`, a prefix such as `whsec_` is left out. */
  readonly secretEncoding?: SecretEncoding | undefined;
  /** Default `sha256`. It is never taken from the request. */
  readonly algorithm?: "sha256" | "sha384" | "sha512" | "sha1" | undefined;
}

/**
 * Verifies an HMAC.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for options that leave open what is signed. The secret is checked at the start.
 * @example hmac({ header: "x-bank-signature", secret: process.env.BANK_SECRET })
 */
export function hmac(options: HmacOptions): Verifier {
  checkNames("hmac", options, {
    ...SIGNED_OPTION_NAMES,
    secret: true,
    secretEncoding: true,
    algorithm: true,
  });
  const { secret, secretEncoding = "utf8", algorithm = "sha256" } = options;
  checkChoice("secretEncoding of hmac", secretEncoding, { utf8: true, base64: true, hex: true });
  checkChoice("algorithm of hmac", algorithm, { sha256: true, sha384: true, sha512: true, sha1: true });
  const load = (givenSecrets: Parameters<typeof importEncodedSecrets>[0], option: string) =>
    importEncodedSecrets(givenSecrets, option, secretEncoding);
  return keyedVerifier(
    { keys: secret, name: "secret", load, refusal: "the signature fits none of the secrets" },
    signedTextReader("hmac", options),
    (text, secrets) => findHmac(text, secrets, algorithm),
  );
}

/** The secret that made one of the signatures, or null. All are compared, in constant time. */
function findHmac(
  { parts, signatures }: SignedText,
  secrets: readonly VerifyingSecret[],
  algorithm: string,
): VerifyingSecret | null {
  let matchingSecret: VerifyingSecret | null = null;
  for (const candidate of secrets) {
    const digest = createHmac(algorithm, candidate.key);
    for (const part of parts) digest.update(part);
    const expected = digest.digest();
    for (const signature of signatures) {
      if (signature.length === expected.length && timingSafeEqual(signature, expected))
        matchingSecret = candidate;
    }
  }
  return matchingSecret;
}
