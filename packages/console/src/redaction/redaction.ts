import { endOfValue, indented, isName, type JsonToken, tokensOf } from "./json-text.ts";

/** What is shown instead of a value. */
export const REDACTED = "•••";

/** Nobody has any use for it on a page, and it proves that a body is authentic. */
const ALWAYS: readonly string[] = ["signature"];

/** A shorter value is looked for in other fields as a whole only: the amount 17.00 does not tell that a user has the id 7. */
const MIN_PART = 4;
/** No stored text is cut before it has so many characters. */
const MAY_BE_CUT = 100;
/** A body with more values in its redacted fields is not shown: each of them is looked for in every text. */
const MAX_VALUES = 200;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What of one event may leave the server. */
export interface Redaction {
  /** The body, indented; null when there is none, or when it cannot be read and so not be redacted. */
  readonly body: string | null;
  /**
   * A text that somebody or something wrote about the event, without the values of redacted fields. Null where nobody can
   * say which values those are: fields are to be redacted, and the body is gone or cannot be read.
   */
  text(text: string): string | null;
}

/** The labels of an event that are fields of its body, by the names that these have there. */
const LABELS = {
  id: ["payTxnId", "idempotency_key"],
  referenceId: ["referenceId"],
  event: ["event"],
  status: ["status"],
} as const;

/** A label, unless the field that it comes from is redacted. */
export function redactedLabel(
  names: readonly string[],
  label: keyof typeof LABELS,
  value: string | null,
): string | null {
  return value !== null && LABELS[label].some((name) => names.includes(name)) ? REDACTED : value;
}

/** Redacts one event: its body, and what was written about it. */
export function redactionOf(names: readonly string[], rawBody: Uint8Array | null): Redaction {
  const all = [...names, ...ALWAYS];
  const read = rawBody === null ? null : objectIn(rawBody);
  const values = read === null ? [] : valuesOf(read, all);
  const tokens = values.length > MAX_VALUES ? null : read;
  const body = tokens === null ? null : indented(withoutFields(tokens, all, values));
  const isKnown = tokens !== null || names.length === 0;
  return {
    body,
    text: (text) => (isKnown ? withoutValues(withoutPairs(text, all), values, 1) : null),
  };
}

/** The tokens of a body that is a JSON object; null for any other. */
function objectIn(rawBody: Uint8Array): readonly JsonToken[] | null {
  try {
    const text = decoder.decode(rawBody);
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? tokensOf(text) : null;
  } catch {
    return null;
  }
}

/** Decoded where it is a string. A name that is written with escapes is the same name. */
function decoded(token: JsonToken): string {
  return token.startsWith('"') ? (JSON.parse(token) as string) : token;
}

/** Every text and number in the redacted fields, the longest first; of a name given twice, both. */
function valuesOf(tokens: readonly JsonToken[], names: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (let i = 0; i < tokens.length; i++) {
    if (!isName(tokens, i) || !names.includes(decoded(tokens[i] ?? ""))) continue;
    const end = endOfValue(tokens, i + 2);
    for (let at = i + 2; at < end; at++) {
      const token = tokens[at] ?? "";
      if (/^["\d-]/.test(token) && !isName(tokens, at)) found.add(decoded(token));
    }
  }
  found.delete("");
  return [...found].sort((a, b) => b.length - a.length);
}

function withoutFields(
  tokens: readonly JsonToken[],
  names: readonly string[],
  values: readonly string[],
): readonly JsonToken[] {
  const kept: JsonToken[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] ?? "";
    kept.push(cleaned(token, names, values));
    if (!isName(tokens, i) || !names.includes(decoded(token))) continue;
    kept.push(":", JSON.stringify(REDACTED));
    i = endOfValue(tokens, i + 2) - 1;
  }
  return kept;
}

/** A string or number in which no value of a redacted field is left, and no character that a page would not show. */
function cleaned(token: JsonToken, names: readonly string[], values: readonly string[]): JsonToken {
  if (!token.startsWith('"')) return values.includes(token) ? JSON.stringify(REDACTED) : token;
  const text = decoded(token);
  const clean = values.includes(text) ? REDACTED : withoutValues(withoutPairs(text, names), values, MIN_PART);
  return visible(clean === text ? token : JSON.stringify(clean));
}

/** `userId=7` and `"userId": "7"` within a text: so a field stands in a signed string, and in the value that swallowed it. */
function withoutPairs(text: string, names: readonly string[]): string {
  return names.reduce(
    (rest, name) =>
      rest.replace(
        new RegExp(`(${escaped(name)}["']?\\s{0,8}[:=]\\s{0,8})("[^"]*"?|'[^']*'?|[^\\s&,;})\\]]+)`, "giu"),
        (_, before: string) => before + REDACTED,
      ),
    text,
  );
}

/** Without the values, however they are written: plain, in JSON, in an address, in another case, cut off at the end. */
function withoutValues(text: string, values: readonly string[], minLength: number): string {
  let rest = text;
  for (const value of values) {
    if (value.length < minLength) continue;
    const spellings = new Set([value, JSON.stringify(value).slice(1, -1), addressSpelling(value)]);
    for (const one of spellings) rest = rest.replace(new RegExp(escaped(one), "giu"), REDACTED);
    rest = withoutCutOff(rest, value);
  }
  return rest;
}

/** Stored texts are cut at a length, with an ellipsis or without, and that may be within a value. */
function withoutCutOff(text: string, value: string): string {
  const hasEllipsis = text.endsWith("…");
  if (!hasEllipsis && text.length < MAY_BE_CUT) return text;
  const whole = (hasEllipsis ? text.slice(0, -1) : text).toLowerCase();
  for (let length = value.length - 1; length >= 1; length--) {
    if (whole.endsWith(value.slice(0, length).toLowerCase()))
      return text.slice(0, whole.length - length) + REDACTED;
  }
  return text;
}

function addressSpelling(value: string): string {
  // A half of a character has no spelling there.
  return encodeURIComponent(value.replace(/\p{Surrogate}/gu, "\uFFFD"));
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** Characters that have no shape of their own, as JSON escapes them. */
function visible(token: JsonToken): JsonToken {
  return token.replace(/[\p{Cf}\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}]/gu, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}
