import type { SwapResult } from "../inbox/store.ts";

/** A statement that never left this process. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}

/** No answer came in time, or the connection went with the answer: the statement may have been done, or may be yet. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** PostgreSQL's five characters for what went wrong; null where the server said nothing. */
export function codeOf(error: unknown): string | null {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : null;
}

/** The server rolled back for another's sake: the same statement may pass at once. */
export function isRollback(error: unknown): boolean {
  const code = codeOf(error);
  return code === "40001" || code === "40P01";
}

/** The server takes no writes: a standby, or a primary that was made read-only. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === "25006";
}

/** What was asked for is not there: a schema, a table, a column. */
export function isMissing(error: unknown): boolean {
  return /^(?:42P01|3F000|42703)$/.test(codeOf(error) ?? "");
}

/** The role may not do it. */
export function isForbidden(error: unknown): boolean {
  return codeOf(error) === "42501";
}

/** A pooler gives each statement to another session, which has none of this session's named statements. */
export function isPooled(error: unknown): boolean {
  const isUnsupported = codeOf(error) === "08P01" && /startup parameter/.test(String(error));
  return isUnsupported || codeOf(error) === "26000" || codeOf(error) === "42P05";
}

/** Data that does not fit: too long, not to be encoded, against a constraint. */
const REFUSED = /^(?:22|23|54)/;
/** The session was ended, or the server is in trouble: the commit may have come before. */
const UNCLEAR = /^(?:08|57P0[12]|58|XX)/;

/** What the failure of a statement says about its writes. */
export function fateOf(error: unknown): Extract<SwapResult, { readonly cause: unknown }> {
  if (error instanceof NotSent) return { kind: "not-written", cause: error.cause ?? error };
  const code = codeOf(error);
  if (code === null || UNCLEAR.test(code)) return { kind: "unknown", cause: error };
  return { kind: REFUSED.test(code) ? "refused" : "not-written", cause: error };
}
