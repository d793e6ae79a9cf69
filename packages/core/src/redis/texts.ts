import { decodeRecord } from "../inbox/record/codec.ts";
import type { Versioned } from "../inbox/store.ts";

/** Stands between a version and the record's text; no version has it. */
const BETWEEN = " ";

/** How the text in Redis begins when the record has this version. */
export function beginningOf(version: string): string {
  return version + BETWEEN;
}

/** A record's text in Redis. */
export function textOf(version: string, encoded: string): string {
  return beginningOf(version) + encoded;
}

/** The reverse; null for what is not there. */
export function versionedOf(text: unknown): Versioned | null {
  if (typeof text !== "string" || text === "") return null;
  const end = text.indexOf(BETWEEN);
  return { version: text.slice(0, end), record: decodeRecord(text.slice(end + BETWEEN.length)) };
}
