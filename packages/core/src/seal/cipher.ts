import { createCipheriv, createDecipheriv, randomFillSync } from "node:crypto";
import { SEALED_PREFIX, type SealedText } from "../inbox/record/codec.ts";
import type { DerivedKey } from "./keys.ts";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const NONCES_PER_BATCH = 512;

let nonces = Buffer.alloc(0);
let usedBytes = 0;

/** Random bytes are cheaper by the thousand. */
function nextNonce(): Buffer {
  if (usedBytes === nonces.length) {
    nonces = randomFillSync(Buffer.alloc(NONCE_BYTES * NONCES_PER_BATCH));
    usedBytes = 0;
  }
  usedBytes += NONCE_BYTES;
  return nonces.subarray(usedBytes - NONCE_BYTES, usedBytes);
}

/** A sealed text cannot be moved: to another record, or under another key's id. */
function additionalData(recordKey: string, keyId: string): Buffer {
  return Buffer.from(`payhooks record ${keyId} ${recordKey}`);
}

/**
 * Seals the text of a record with AES-256-GCM.
 *
 * @param recordKey the record's key, which is authenticated too
 */
export function sealText(text: string, recordKey: string, { id, encryption }: DerivedKey): string {
  const nonce = nextNonce();
  const cipher = createCipheriv(ALGORITHM, encryption, nonce);
  cipher.setAAD(additionalData(recordKey, id));
  const sealed = cipher.update(text, "utf8");
  cipher.final();
  return `${SEALED_PREFIX}${id}:${Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString("base64")}`;
}

/** The reverse of {@link sealText}; null if the text was changed, moved, or sealed with another key. */
export function openText(
  { base64 }: SealedText,
  recordKey: string,
  { id, encryption }: DerivedKey,
): string | null {
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString("base64") !== base64) return null;
  const end = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, encryption, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(additionalData(recordKey, id));
  decipher.setAuthTag(bytes.subarray(end));
  try {
    const plainBytes = decipher.update(bytes.subarray(NONCE_BYTES, end));
    decipher.final();
    return plainBytes.toString();
  } catch {
    return null;
  }
}
