import { ClientError } from "../errors.ts";
import { kindOf } from "../kind-of.ts";

/** A name of a header (RFC 9110, 5.6.2). */
const NAME_PATTERN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, with spaces inside. */
const VALUE_PATTERN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** The headers that only the client sets: its key, the form of the answer, and how the bytes travel. */
const CLIENT_HEADERS: ReadonlySet<string> = new Set([
  "x-api-key",
  "accept",
  "accept-encoding",
  "host",
  "connection",
  "expect",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The names of headers whose values are kept out of errors. */
const SECRET_NAME_PATTERN = /auth|cookie|key|secret|token/;

/**
 * Checks the headers of one call. An empty value is refused, too: without the id of the connected merchant, the
 * payment would be for the merchant itself.
 *
 * @throws ClientError `ERR_HEADER_INVALID`. No error shows a value.
 */
export function callHeaders(headers: unknown): {
  readonly headers: Readonly<Record<string, string>>;
  /** Values that must not appear in an error. */
  readonly secrets: readonly string[];
} {
  if (headers === undefined) return { headers: {}, secrets: [] };
  // An instance of Headers, or a list of pairs, would be read as an object without members.
  if (Object.prototype.toString.call(headers) !== "[object Object]") {
    throw invalidHeaderError("headers", "is not a plain object", "Pass { name: value }.");
  }
  const checked = new Map<string, string>();
  for (const [name, value] of Object.entries(headers as Readonly<Record<string, unknown>>)) {
    const lower = name.toLowerCase();
    const field = `headers.${name.slice(0, 60)}`;
    if (!NAME_PATTERN.test(name))
      throw invalidHeaderError(field, "is not a name of a header", "Use letters, digits and -.");
    if (CLIENT_HEADERS.has(lower) || lower.startsWith("content-")) {
      throw invalidHeaderError(field, "is a header that the client sets itself", "Leave it out.");
    }
    if (checked.has(lower)) throw invalidHeaderError(field, "is given twice", "Give each header once.");
    if (typeof value !== "string" || value === "") {
      const description = value === "" ? "empty" : kindOf(value);
      throw invalidHeaderError(field, `is ${description}`, "Pass its value, or leave the header out.");
    }
    if (!VALUE_PATTERN.test(value)) {
      throw invalidHeaderError(
        field,
        "has characters that no header can carry",
        "Use visible ASCII without spaces around it.",
      );
    }
    checked.set(lower, value);
  }
  const secrets = [...checked].flatMap(([name, value]) => (SECRET_NAME_PATTERN.test(name) ? [value] : []));
  return { headers: Object.fromEntries(checked), secrets };
}

function invalidHeaderError(field: string, problem: string, fix: string): ClientError {
  return new ClientError("ERR_HEADER_INVALID", `${field} ${problem}.`, { fix, field });
}
