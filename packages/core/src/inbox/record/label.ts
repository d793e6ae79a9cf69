import { sha256 } from "../../signature/sha256.ts";

/** A reference has at most 100 letters, of up to four bytes each. */
const MAX_BYTES = 512;
const SIGN = "sha256:";
/** Characters that no database accepts in a text. */
const UNFIT = /\0|\p{Surrogate}/u;
/** Texts that nothing above applies to. Nearly all are like this. */
const PLAIN = /^[\x20-\x7e]{0,64}$/;

/**
 * A text by which events are found and compared: whole, or its full SHA-256 if it is long or no database takes it. Two texts never
 * have the same label: a text that looks like such a digest is digested too.
 */
export function label(text: string): string {
  if (PLAIN.test(text) && !text.startsWith(SIGN)) return text;
  const fits = Buffer.byteLength(text) <= MAX_BYTES && !UNFIT.test(text) && !text.startsWith(SIGN);
  return fits ? text : SIGN + sha256(JSON.stringify(text), "hex");
}
