import { sha256 } from "../../signature/sha256.ts";

/** A reference has at most 100 letters, of up to four bytes each. */
const MAX_LABEL_BYTES = 512;
const DIGEST_PREFIX = "sha256:";
/** Characters that no database accepts in a text. */
const UNSTORABLE_PATTERN = /\0|\p{Surrogate}/u;
/** Texts that need none of the rules above. Nearly all texts are like this. */
const SIMPLE_TEXT_PATTERN = /^[\x20-\x7e]{0,64}$/;

/**
 * A text by which events are found and compared. It is the whole text, or its full SHA-256 if the text is long or a database does
 * not take it. Two texts never have the same label, because a text that looks like such a digest is digested too.
 */
export function labelOf(text: string): string {
  if (SIMPLE_TEXT_PATTERN.test(text) && !text.startsWith(DIGEST_PREFIX)) return text;
  const fits =
    Buffer.byteLength(text) <= MAX_LABEL_BYTES &&
    !UNSTORABLE_PATTERN.test(text) &&
    !text.startsWith(DIGEST_PREFIX);
  return fits ? text : DIGEST_PREFIX + sha256(JSON.stringify(text), "hex");
}

/** True for a label that is a digest. No search finds it, since a search makes a label of the text that it is given. */
export function isDigest(label: string): boolean {
  return label.startsWith(DIGEST_PREFIX);
}
