import { PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { isError, propertyOf, stringOf } from "../protocol/foreign-value.ts";

/** The words of an error. Some drivers give a code, others only a text. */
export function errorTextOf(error: unknown): string {
  return `${stringOf(propertyOf(error, "code"))} ${stringOf(error)}`;
}

/** True when another process holds the file. */
export function isBusy(error: unknown): boolean {
  return /SQLITE_BUSY|database is locked|database table is locked/i.test(errorTextOf(error));
}

/** True when there is no room on the disk. */
export function isFull(error: unknown): boolean {
  return /SQLITE_FULL|database or disk is full/i.test(errorTextOf(error));
}

/** True when a table was dropped. */
export function isTableMissing(error: unknown): boolean {
  return /no such table/i.test(errorTextOf(error));
}

/** True when the file is fine, and the data that was to be written is at fault. */
export function isDataRefused(error: unknown): boolean {
  const words = errorTextOf(error);
  if (/not open/i.test(words)) return false;
  const isKind = isError(error) && (error instanceof TypeError || error instanceof RangeError);
  return isKind || /SQLITE_(?:TOOBIG|CONSTRAINT|MISMATCH)|too big|constraint|datatype mismatch/i.test(words);
}

/** The error for a statement or a commit that fails. */
export function commitFailedError(cause: unknown): PayhooksError {
  return new PayhooksError("ERR_INBOX_UNAVAILABLE", `SQLite could not commit: ${describeError(cause)}.`, {
    fix: "Check whether the disk is full, the file is damaged, or another program holds it. Until it works, deliveries are answered 503.",
    cause,
  });
}
