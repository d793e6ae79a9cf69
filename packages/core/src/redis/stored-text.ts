import type { VersionedRecord } from "../inbox/contract/store.ts";
import { decodeRecord } from "../inbox/record/codec.ts";

/** Separates a version from the record's text. No version contains it. */
const VERSION_SEPARATOR = " ";

/** The beginning of the text in Redis if the record has this version. */
export function versionPrefixOf(version: string): string {
  return version + VERSION_SEPARATOR;
}

/** A record's text in Redis. */
export function storedTextOf(version: string, encoded: string): string {
  return versionPrefixOf(version) + encoded;
}

/** The reverse of {@link storedTextOf}; null if there is no text. */
export function versionedRecordOf(text: unknown): VersionedRecord | null {
  if (typeof text !== "string" || text === "") return null;
  const end = text.indexOf(VERSION_SEPARATOR);
  return { version: text.slice(0, end), record: decodeRecord(text.slice(end + VERSION_SEPARATOR.length)) };
}
