import { endOfValue, indented, isName, type JsonToken, tokensOf } from "./json-text.ts";

/** The text that is shown instead of a redacted value. */
export const REDACTED = "•••";

/** Nobody needs the signature on a page, and it would prove to others that the body is authentic. */
const ALWAYS: readonly string[] = ["signature"];

/** A shorter value is redacted only where it is a whole field: the amount 17.00 does not reveal the id 7. */
const MIN_PART = 4;
/** Stored texts are never cut to fewer characters than this. */
const MAY_BE_CUT = 100;
/** A body with more values in its redacted fields is not shown, since each value is searched for in every text. */
const MAX_VALUES = 200;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The parts of one event that may leave the server. */
export interface Redaction {
  /** The body, indented. Null if there is none, or if it cannot be read and therefore not be redacted. */
  readonly body: string | null;
  /**
   * Removes the values of redacted fields from a text about the event, such as a note or an error. Null if these values
   * are not known, because there are fields to redact and the body is gone or cannot be read.
   */
  text(text: string): string | null;
}

/** The labels of an event that come from its body, and the names of their fields there. */
const LABELS = {
  id: ["payTxnId", "idempotency_key"],
  referenceId: ["referenceId"],
  event: ["event"],
  status: ["status"],
  amount: ["amount", "base_amount"],
} as const;

/** A label, or {@link REDACTED} if the field that it comes from is redacted. */
export function redactedLabel(
  names: readonly string[],
  label: keyof typeof LABELS,
  value: string | null,
): string | null {
  return value !== null && LABELS[label].some((name) => names.includes(name)) ? REDACTED : value;
}

/** Redacts one event: its body, and the texts about it. */
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

/** The tokens of a body that is a JSON object. Null for any other body. */
function objectIn(rawBody: Uint8Array): readonly JsonToken[] | null {
  try {
    const text = decoder.decode(rawBody);
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? tokensOf(text) : null;
  } catch {
    return null;
  }
}

/** The text of a token. Strings are decoded, since a name that is written with escapes is still the same name. */
function decoded(token: JsonToken): string {
  return token.startsWith('"') ? (JSON.parse(token) as string) : token;
}

/** All texts and numbers in the redacted fields, longest first. If a name occurs twice, both values are included. */
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

/** A token without the values of redacted fields, and with its invisible characters escaped. */
function cleaned(token: JsonToken, names: readonly string[], values: readonly string[]): JsonToken {
  if (!token.startsWith('"')) return values.includes(token) ? JSON.stringify(REDACTED) : token;
  const text = decoded(token);
  const clean = values.includes(text) ? REDACTED : withoutValues(withoutPairs(text, names), values, MIN_PART);
  return visible(clean === text ? token : JSON.stringify(clean));
}

/**
 * Redacts pairs within a text, such as `userId=7` and `"userId": "7"`. A signed string has fields in this form, and so
 * does a value that contains a part of a signed string.
 */
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

/** Removes the values, however they are written: plain, as in JSON or a URL, in another case, or cut off at the end. */
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

/** Long texts are cut before they are stored, with or without an ellipsis. The cut may be in the middle of a value. */
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
  // encodeURIComponent throws for half a surrogate pair.
  return encodeURIComponent(value.replace(/\p{Surrogate}/gu, "\uFFFD"));
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** Writes invisible characters as JSON escapes. */
function visible(token: JsonToken): JsonToken {
  return token.replace(/[\p{Cf}\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}]/gu, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}
