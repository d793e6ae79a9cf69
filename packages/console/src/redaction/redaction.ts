import type { Contents } from "@payhooks/core";
import { hideFields } from "@payhooks/core/inbox";

/** The text that is shown instead of a redacted value. */
export const REDACTED = "•••";

/** Stored texts are never cut to fewer characters than this. */
const MAY_BE_CUT = 100;
/** An event with more values in its redacted fields is not shown, since each value is searched for in every text. */
const MAX_VALUES = 200;

/** The parts of one event that may leave the server. */
export interface Redaction {
  /** Its fields and what was signed. Null if it has ended, or cannot be redacted. */
  readonly contents: Contents | null;
  /**
   * Removes the values of redacted fields from a text about the event, such as a note or an error. Null if these values
   * are not known, because there are fields to redact and the event has ended or cannot be read.
   */
  text(text: string): string | null;
}

/** The labels of an event that come from its fields, and the names of these. */
const LABELS = {
  id: ["payTxnId", "idempotency_key"],
  referenceId: ["referenceId"],
  event: ["event"],
  status: ["status"],
  amount: ["amount"],
} as const;

/** A label, or {@link REDACTED} if the field that it comes from is redacted. */
export function redactedLabel(
  names: readonly string[],
  label: keyof typeof LABELS,
  value: string | null,
): string | null {
  return value !== null && LABELS[label].some((name) => names.includes(name)) ? REDACTED : value;
}

/** Redacts one event: its contents, and the texts about it. */
export function redactionOf(names: readonly string[], contents: Contents | null): Redaction {
  const values = contents === null ? [] : valuesOf(contents, names);
  const canShow = contents !== null && values.length <= MAX_VALUES;
  const isKnown = names.length === 0 || (canShow && contents.fields.length > 0);
  return {
    contents: canShow ? hideFields(contents, names) : null,
    text: (text) => (isKnown ? withoutValues(withoutPairs(text, names), values) : null),
  };
}

/** All values of the redacted fields, longest first: those that handlers get, and those that the signed text may have. */
function valuesOf({ fields, signed }: Contents, names: readonly string[]): readonly string[] {
  const isRedacted = (name: string): boolean => name.split(".").some((one) => names.includes(one));
  const found = new Set<string>();
  for (const { name, value } of fields) if (value !== null && isRedacted(name)) found.add(value);
  for (const { name, text } of signed) {
    if (name !== null && isRedacted(name)) found.add(text.slice(text.indexOf("=") + 1));
  }
  found.delete("");
  return [...found].sort((a, b) => b.length - a.length);
}

/** Redacts pairs within a text, such as `userId=7` and `"userId": "7"`. */
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
function withoutValues(text: string, values: readonly string[]): string {
  let rest = text;
  for (const value of values) {
    const spellings = new Set([value, JSON.stringify(value).slice(1, -1), addressSpelling(value)]);
    for (const one of spellings) {
      if (one.length <= rest.length) rest = rest.replace(new RegExp(escaped(one), "giu"), REDACTED);
    }
    rest = withoutCutOff(rest, value);
  }
  return rest;
}

/** Long texts are cut before they are stored, with or without an ellipsis. The cut may be in the middle of a value. */
function withoutCutOff(text: string, value: string): string {
  const hasEllipsis = text.endsWith("…");
  if (!hasEllipsis && text.length < MAY_BE_CUT) return text;
  const whole = (hasEllipsis ? text.slice(0, -1) : text).toLowerCase();
  const start = value.slice(0, whole.length).toLowerCase();
  for (let length = Math.min(value.length - 1, start.length); length >= 1; length--) {
    if (whole.endsWith(start.slice(0, length))) return text.slice(0, whole.length - length) + REDACTED;
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
