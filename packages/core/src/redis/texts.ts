import type { Versioned } from "../inbox/contract/store.ts";
import { decodeRecord } from "../inbox/record/codec.ts";

/** Separates a version from the record's text. No version contains it. */
const BETWEEN = " ";

/** The beginning of the text in Redis if the record has this version. */
export function beginningOf(version: string): string {
  return version + BETWEEN;
}

/** A record's text in Redis. */
export function versionedTextOf(version: string, encoded: string): string {
  return beginningOf(version) + encoded;
}

/** The reverse of {@link versionedTextOf}; null if there is no text. */
export function versionedOf(text: unknown): Versioned | null {
  if (typeof text !== "string" || text === "") return null;
  const end = text.indexOf(BETWEEN);
  return { version: text.slice(0, end), record: decodeRecord(text.slice(end + BETWEEN.length)) };
}
