import { createPublicKey, type KeyObject } from "node:crypto";
import { PayhooksError } from "../protocol/errors.ts";
import {
  fingerprintOf,
  importPublicKeys,
  importSecrets,
  listKeys,
  type OneOrMore,
  readPublicKey,
  type SecretInput,
  type VerifyingSecret,
} from "../signature/keys.ts";

/** How the text of a secret stands for its bytes. */
export type SecretEncoding = "utf8" | "base64" | "hex";

/** Imports secrets whose texts are encoded. A prefix such as `whsec_` does not belong to the base64, and is left out. */
export function importEncodedSecrets(
  input: OneOrMore<SecretInput> | undefined,
  option: string,
  encoding: SecretEncoding,
): readonly VerifyingSecret[] {
  if (encoding === "utf8") return importSecrets(input, option);
  // As texts they are checked for quotes, blanks and placeholders first.
  importSecrets(input, option);
  const decode = (secret: SecretInput | undefined): SecretInput | undefined =>
    typeof secret === "string" && secret.trim() !== "" ? decodeSecret(secret, option, encoding) : secret;
  const list: readonly (SecretInput | undefined)[] = Array.isArray(input) ? input : [input as SecretInput];
  return importSecrets(list.map(decode), option);
}

function decodeSecret(secret: string, option: string, encoding: "base64" | "hex"): Uint8Array {
  const text = encoding === "base64" ? secret.replace(/^[a-z]{1,12}_/, "") : secret.toLowerCase();
  const bytes = Buffer.from(text, encoding);
  const reencoded = bytes.toString(encoding);
  if (bytes.length > 0 && reencoded.replace(/=+$/, "") === text.replace(/=+$/, "")) return bytes;
  throw new PayhooksError(
    "ERR_SECRET_KIND",
    `${option} is not ${encoding}, although secretEncoding says so.`,
    {
      fix: "Copy the secret again from the sender's settings, alone and on one line.",
    },
  );
}

/** The algorithms of {@link publicKeySignature}. */
export type PublicKeyAlgorithm = "rsa-sha256" | "rsa-pss-sha256" | "ecdsa-sha256" | "ed25519";

/** A public key that is ready to verify with. */
export interface PublicVerifyingKey {
  readonly keyId: string;
  readonly key: KeyObject;
}

const KEY_TYPES = { "ecdsa-sha256": "ec", ed25519: "ed25519" } as const;

/** The beginning of an Ed25519 key in SPKI form, before its 32 bytes (RFC 8410, 4). */
const ED25519_SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

/** Imports public keys of one algorithm. An Ed25519 key may be its 32 bytes in hex or base64, with a prefix such as `whpk_`. */
export function importKeysOf(
  input: OneOrMore<string> | undefined,
  option: string,
  algorithm: PublicKeyAlgorithm,
): readonly PublicVerifyingKey[] {
  if (algorithm === "rsa-sha256" || algorithm === "rsa-pss-sha256") return importPublicKeys(input, option);
  return listKeys(input, option).map((text) => {
    const isText = typeof text === "string";
    const key =
      (algorithm === "ed25519" && isText ? readRawEd25519(text) : null) ?? readPublicKey(text, option);
    if (key.asymmetricKeyType !== KEY_TYPES[algorithm]) {
      throw new PayhooksError(
        "ERR_KEY_UNREADABLE",
        `${option} is a key of type "${key.asymmetricKeyType}", and ${algorithm} needs "${KEY_TYPES[algorithm]}".`,
        { fix: "Take the key that the sender shows for its webhooks, or name its algorithm." },
      );
    }
    return { key, keyId: fingerprintOf(key) };
  });
}

function readRawEd25519(text: string): KeyObject | null {
  const unprefixed = text.trim().replace(/^[a-z]{1,12}_/, "");
  const bytes = /^[0-9a-f]{64}$/i.test(unprefixed)
    ? Buffer.from(unprefixed, "hex")
    : Buffer.from(unprefixed, "base64");
  if (bytes.length !== 32) return null;
  return createPublicKey({ key: Buffer.concat([ED25519_SPKI_PREFIX, bytes]), format: "der", type: "spki" });
}
