import { type ErrorCode, isPayhooksError } from "@payhooks/core";
import { escapeInvisible } from "./views/text.ts";

/** An error of Payhooks as the console shows it. */
export interface Problem {
  /** 400 if what was asked cannot be answered as it is, 503 if the inbox or the receiver fails. */
  readonly status: 400 | 503;
  readonly code: string;
  /** It may quote the request: invisible characters are shown as codes. */
  readonly message: string;
}

/** The codes of a question that no inbox could answer better. Every other error is one of the server. */
const INPUT_ERROR_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  "ERR_AMOUNT_INVALID",
  "ERR_NAMES_INVALID",
  "ERR_NOT_SEARCHABLE",
  "ERR_OPTION_INVALID",
  "ERR_OPTION_MISSING",
]);

/**
 * The parts of an error that the console shows. Null for an error of others, whose message may contain
 * anything.
 */
export function problemOf(error: unknown): Problem | null {
  if (!isPayhooksError(error)) return null;
  const { code, message } = error;
  return { status: INPUT_ERROR_CODES.has(code) ? 400 : 503, code, message: escapeInvisible(message) };
}
