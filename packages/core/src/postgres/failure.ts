import type { SwapResult } from "../inbox/contract/store.ts";
import { sqlStateOf } from "./connection-errors.ts";

/** A statement that never left this process. */
export class NotSentError extends Error {
  override readonly name = "NotSentError";
}

/** No answer came in time, or the connection was lost before it came. The statement may have been run, or may still be. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

/** The server rolled the statement back because of a deadlock or a conflict. The same statement may succeed at once. */
export function isRollback(error: unknown): boolean {
  const code = sqlStateOf(error);
  return code === "40001" || code === "40P01";
}

/** The server accepts no writes: it is a standby, or a primary that was made read-only. */
export function isReadOnly(error: unknown): boolean {
  return sqlStateOf(error) === "25006";
}

/** The tables were made again, in another way. This session's named statements are for the earlier tables. */
export function isStatementStale(error: unknown): boolean {
  return sqlStateOf(error) === "0A000";
}

/** A schema, table or column does not exist. */
export function isTableMissing(error: unknown): boolean {
  return /^(?:42P01|3F000|42703)$/.test(sqlStateOf(error) ?? "");
}

/** The role lacks a permission. */
export function isForbidden(error: unknown): boolean {
  return sqlStateOf(error) === "42501";
}

/**
 * There is a pooler in between. It has refused a parameter of the session, or gives each statement to another session, which does
 * not know this session's named statements.
 */
export function isPoolerError(error: unknown): boolean {
  const cause = error instanceof NotSentError ? error.cause : error;
  const isUnsupported = sqlStateOf(cause) === "08P01" && /startup parameter/.test(String(cause));
  return isUnsupported || sqlStateOf(cause) === "26000" || sqlStateOf(cause) === "42P05";
}

/** The data is not accepted: it is too long, cannot be encoded, or violates a constraint. */
const REFUSED_DATA_PATTERN = /^(?:22|23|54)/;
/** The session ended, or the server is in trouble. The commit may have happened before. */
const UNCLEAR_COMMIT_PATTERN = /^(?:08|57P0[12]|58|XX)/;

/** The meaning of a statement's failure for its writes. */
export function writeOutcomeOf(error: unknown): Extract<SwapResult, { readonly cause: unknown }> {
  if (error instanceof NotSentError) return { kind: "not-written", cause: error.cause ?? error };
  const code = sqlStateOf(error);
  if (code === null || UNCLEAR_COMMIT_PATTERN.test(code)) return { kind: "unknown", cause: error };
  return { kind: REFUSED_DATA_PATTERN.test(code) ? "refused" : "not-written", cause: error };
}
