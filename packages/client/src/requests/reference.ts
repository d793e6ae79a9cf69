import { ClientError, type ClientErrorCode } from "../errors.ts";
import { kindOf } from "../kind-of.ts";

/**
 * The limit of the specification (Limits). It is applied to UTF-16 units, so there are never more than 100 characters.
 */
const MAX_REFERENCE_LENGTH = 100;

/**
 * The reference of a new transaction as JSON text (specification, Limits: at most 100 characters, unique). An `&` is
 * refused. Callbacks are signed over `name=value&name=value…` and nothing is escaped, so a reference with an `&` can
 * look like further fields, and the receiver would hold the callback instead of running it.
 */
export function referenceText(reference: unknown): string {
  const text = checkPathText(reference, "reference", "ERR_REFERENCE_INVALID");
  if (text.length > MAX_REFERENCE_LENGTH) {
    throw invalidReferenceError(
      `reference has ${text.length} characters.`,
      `Use at most ${MAX_REFERENCE_LENGTH}.`,
    );
  }
  if (text.includes("&")) {
    throw invalidReferenceError(
      `reference ${JSON.stringify(text)} contains an "&".`,
      'Use another character. Callbacks are signed over fields that are joined with "&", so their signature would fit more than one event.',
    );
  }
  if (text.trim() !== text) {
    throw invalidReferenceError(
      `reference ${JSON.stringify(text)} begins or ends with white space.`,
      "Trim it.",
    );
  }
  return JSON.stringify(text);
}

/**
 * Checks that a text can be a segment of a path. A look-up accepts more than a new transaction does, since another
 * program may have created the transaction.
 */
export function checkPathText(
  value: unknown,
  field: string,
  code: Extract<ClientErrorCode, "ERR_REFERENCE_INVALID" | "ERR_FIELD_INVALID">,
): string {
  const invalidTextError = (problem: string, fix: string): ClientError =>
    new ClientError(code, problem, { fix, field });
  if (value === undefined || value === null || value === "") {
    throw new ClientError("ERR_FIELD_MISSING", `${field} is missing or empty.`, {
      fix: `Pass the ${field}.`,
      field,
    });
  }
  if (typeof value !== "string")
    throw invalidTextError(`${field} is ${kindOf(value)}.`, "Pass it as a string.");
  if (/\p{Cc}|\p{Cs}|\u2028|\u2029/u.test(value)) {
    throw invalidTextError(
      `${field} contains control characters, line breaks or half a character.`,
      "Use letters, digits and signs such as - _ . only.",
    );
  }
  if (value.trim() === "") throw invalidTextError(`${field} is blank.`, "Pass the text itself.");
  if (value === "." || value === "..") {
    throw invalidTextError(
      `${field} is ${JSON.stringify(value)}, which a URL path drops.`,
      "Use another one.",
    );
  }
  return value;
}

function invalidReferenceError(problem: string, fix: string): ClientError {
  return new ClientError("ERR_REFERENCE_INVALID", problem, { fix, field: "reference" });
}
