import { constants, createHash, type KeyObject, publicDecrypt } from "node:crypto";

/** The digest of the text that was signed. */
export interface RecoveredDigest {
  readonly algorithm: "sha1" | "sha256" | "sha384" | "sha512";
  readonly digest: Buffer;
}

/** The ASN.1 DigestInfo up to the digest (RFC 8017, 9.2). */
const DIGEST_PREFIXES: readonly (readonly [RecoveredDigest["algorithm"], string])[] = [
  ["sha256", "3031300d060960864801650304020105000420"],
  ["sha1", "3021300906052b0e03021a05000414"],
  ["sha384", "3041300d060960864801650304020205000430"],
  ["sha512", "3051300d060960864801650304020305000440"],
];

/**
 * Recovers the digest from a signature that was made with this key's private half, whatever the signed text was. Null
 * if another key made the signature or it is damaged. This distinguishes a wrong key from a changed body.
 */
export function recoverDigest(signature: Uint8Array, key: KeyObject): RecoveredDigest | null {
  let plain: Buffer;
  try {
    plain = publicDecrypt({ key, padding: constants.RSA_PKCS1_PADDING }, signature);
  } catch {
    return null;
  }
  const hex = plain.toString("hex");
  for (const [algorithm, prefix] of DIGEST_PREFIXES) {
    if (hex.startsWith(prefix)) return { algorithm, digest: plain.subarray(prefix.length / 2) };
  }
  return null;
}

export function isDigestOf({ algorithm, digest }: RecoveredDigest, text: string): boolean {
  return createHash(algorithm).update(text, "utf8").digest().equals(digest);
}
