import { createCipheriv, createDecipheriv, randomFillSync } from "node:crypto";
import { SEALED, type SealedText } from "../inbox/record/codec.ts";
import type { DerivedKey } from "./keys.ts";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const NONCES_AT_ONCE = 512;

let nonces = Buffer.alloc(0);
let used = 0;

/** Random bytes are cheaper by the thousand. */
function nextNonce(): Buffer {
  if (used === nonces.length) {
    nonces = randomFillSync(Buffer.alloc(NONCE_BYTES * NONCES_AT_ONCE));
    used = 0;
  }
  used += NONCE_BYTES;
  return nonces.subarray(used - NONCE_BYTES, used);
}

/** A sealed text cannot be moved: to another record, or under another key's id. */
function boundTo(place: string, keyId: string): Buffer {
  return Buffer.from(`payhooks record ${keyId} ${place}`);
}

/**
 * Seals the text of a record with AES-256-GCM.
 *
 * @param place the record's key, which is authenticated too
 */
export function sealText(text: string, place: string, { id, encryption }: DerivedKey): string {
  const nonce = nextNonce();
  const cipher = createCipheriv(ALGORITHM, encryption, nonce);
  cipher.setAAD(boundTo(place, id));
  const sealed = cipher.update(text, "utf8");
  cipher.final();
  return `${SEALED}${id}:${Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString("base64")}`;
}

/** The reverse of {@link sealText}; null if the text was changed, moved, or sealed with another key. */
export function openText(
  { base64 }: SealedText,
  place: string,
  { id, encryption }: DerivedKey,
): string | null {
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString("base64") !== base64) return null;
  const end = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, encryption, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(boundTo(place, id));
  decipher.setAuthTag(bytes.subarray(end));
  try {
    const opened = decipher.update(bytes.subarray(NONCE_BYTES, end));
    decipher.final();
    return opened.toString();
  } catch {
    return null;
  }
}
