import { hideFields } from "@payhooks/core/inbox";

/** The part of an event that a page shows. */
type ShownContents = ReturnType<typeof hideFields>;

/** The text that is shown instead of a redacted value. */
export const REDACTED = "•••";

/** A shorter value is hidden only where it is a whole field: the amount 17.00 does not reveal the id 7. */
const MIN_PART = 4;
/** Stored texts are never cut to fewer characters than this. */
const MAY_BE_CUT = 100;
/** An event with more values in its redacted fields is not shown, since each value is searched for in every text. */
const MAX_VALUES = 200;

/** The parts of one event that may leave the server. */
export interface Redaction {
  /** Its fields and what was signed. Null if it has ended, or cannot be redacted. */
  readonly contents: ShownContents | null;
  /**
   * Removes the values of redacted fields from a text about the event, such as a note or an error. Null if these values
   * are not known, because there are fields to redact and the event has ended or cannot be read.
   */
  text(text: string): string | null;
}

/** The labels of an event that come from its fields, and the names of these. */
const LABELS = {
  id: ["payTxnId", "idempotency_key"],
  // Of a connect event it is the `id` in its data.
  referenceId: ["referenceId", "id"],
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

/** Redacts one event: its contents, and the texts about it. */
export function redactionOf(names: readonly string[], contents: ShownContents | null): Redaction {
  const values = contents === null ? [] : valuesOf(contents, names);
  const canShow = contents !== null && values.length <= MAX_VALUES;
  const isKnown = names.length === 0 || (canShow && contents.fields.length > 0);
  return {
    contents: canShow ? withoutParts(contents, names, values) : null,
    text: (text) => (isKnown ? withoutValues(withoutPairs(text, names), values) : null),
  };
}

/** The contents without redacted values that stand within other fields, or in what was signed beside their own fields. */
function withoutParts(
  contents: ShownContents,
  names: readonly string[],
  values: readonly string[],
): ShownContents {
  const long = values.filter(({ length }) => length >= MIN_PART);
  const isHidden = ({ value }: ShownContents["fields"][number]): boolean =>
    value?.startsWith("[") === true && hasMember(JSON.parse(value), names);
  const clean = (text: string): string =>
    values.includes(text) ? REDACTED : withoutValues(withoutPairs(text, names), long);
  const hidden = hideFields(contents, names, REDACTED);
  const fields = hidden.fields.map((field) => ({
    name: clean(field.name),
    value: isHidden(field) ? REDACTED : field.value === null ? null : clean(field.value),
  }));
  const pieces = hidden.signed.map(({ name, text }) => ({ name, text: clean(text) }));
  // A value that has an "&" may reach over several pieces.
  const whole = pieces
    .map(({ text }) => text)
    .join("")
    .toLowerCase();
  // A webhook is one piece, in which a value may be escaped as in JSON within JSON.
  const isWhole = pieces.every(({ name }) => name === null);
  const isChanged = fields.some(
    ({ name, value }, at) => name !== contents.fields[at]?.name || value !== contents.fields[at]?.value,
  );
  const isSplit = long.some((value) => whole.includes(value.toLowerCase()));
  return {
    fields,
    signed: isSplit || (isWhole && isChanged) ? [{ name: null, text: REDACTED }] : pieces,
  };
}

/** All values of the redacted fields, longest first: those that handlers get, and those that the signed text may have. */
function valuesOf({ fields, signed }: ShownContents, names: readonly string[]): readonly string[] {
  const isRedacted = (name: string): boolean => name.split(".").some((one) => names.includes(one));
  const found = new Set<string>();
  for (const { name, value } of fields) {
    if (value === null || !isRedacted(name)) continue;
    found.add(value);
    // A list of a webhook is one value; each of its own is as secret.
    if (value.startsWith("[")) for (const text of innerTexts(value)) found.add(text);
  }
  for (const { name, text } of signed) {
    if (name !== null && isRedacted(name)) found.add(text.slice(text.indexOf("=") + 1));
  }
  found.delete("");
  return [...found].sort((a, b) => b.length - a.length);
}

/** True if an object within a list has one of these members. Bodies are nested at most 16 deep. */
function hasMember(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, inner]) => names.includes(name) || hasMember(inner, names));
}

function innerTexts(list: string): readonly string[] {
  const tokens = list.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g) ?? [];
  return tokens.map((token) => (token.startsWith('"') ? String(JSON.parse(token)) : token));
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
