import type { AnyReceiver, StoredEvent } from "@payhooks/core";
import { hideFields } from "@payhooks/core/events";
import { hasNamed, type RedactedValues, redactedValues } from "./values.ts";

/** The part of an event that a page shows. */
type ShownContents = ReturnType<typeof hideFields>;

/** The text that is shown instead of a redacted value. */
export const REDACTION_MARK = "•••";

/** A webhook may have thousands of fields. A person needs the first ones. */
const MAX_FIELDS = 200;
/** A shorter value is hidden only where it is a whole field: the amount 17.00 does not reveal the id 7. */
const MIN_PART_LENGTH = 4;
/** Stored texts are never cut to fewer characters than this. */
const MIN_CUT_LENGTH = 100;

/** The parts of one event that may leave the server. */
export interface Redaction {
  /** Its fields and the signed text. Null if it has ended, or cannot be redacted. */
  readonly contents: ShownContents | null;
  /**
   * Removes the values of redacted fields from a text about the event, such as a note or an error. Null if these values
   * are not known, because there are fields to redact and the event has ended or cannot be read.
   */
  redactText(text: string): string | null;
  /** Removes them from a label of the event. */
  redactLabel<Value extends string | null>(label: Label, value: Value): Value | string;
}

/** The labels of an event, and the paths of the fields that they come from. A source reads them from any field. */
const LABELS = {
  id: ["payTxnId", "idempotency_key"],
  // Of a connect event it is the `id` in its data.
  referenceId: ["referenceId", "data.id"],
  event: ["event"],
  status: ["status"],
  amount: ["amount", "base_amount", "data.amount"],
  tenant: [],
} as const;
type Label = keyof typeof LABELS;

/**
 * True if a field that a label may come from is redacted, or the object that has it. Of a redacted path only the last name
 * counts, because the fields of an event that has ended are not known.
 */
function isRedactedLabel(label: Label, names: readonly string[]): boolean {
  return LABELS[label].some((path) =>
    names.some((name) => path.startsWith(`${name}.`) || lastNameOf(path) === lastNameOf(name)),
  );
}

function lastNameOf(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

/** Redacts the events of a page. */
export interface Redactor {
  /** Redacts an event. */
  redact(event: Pick<StoredEvent, "flow" | "delivery">): Redaction;
  /** Redacts an event whose fields are not known. */
  readonly withoutFields: Redaction;
}

/** The redactor of a console that redacts the fields of these names. */
export function redactorOf(names: readonly string[], receiver: Pick<AnyReceiver, "contents">): Redactor {
  const withoutFields = redactionOf(names, null);
  return {
    redact({ flow, delivery }) {
      const contents = () => (delivery === null ? null : receiver.contents(delivery));
      if (names.length > 0) return redactionOf(names, contents(), flow !== "payments" && flow !== "connect");
      // A list has no use for the contents if nothing is redacted.
      return {
        ...withoutFields,
        get contents() {
          return redactionOf(names, contents()).contents;
        },
      };
    },
    withoutFields,
  };
}

/**
 * Redacts one event: its contents, the texts about it and its labels.
 *
 * @param isOfSource the source's `read` has chosen its labels, so it is not known from which fields they come.
 */
export function redactionOf(
  names: readonly string[],
  contents: ShownContents | null,
  isOfSource = false,
): Redaction {
  const redacted = contents === null ? null : redactedValues(contents, names);
  const values = redacted?.values ?? [];
  const isKnown =
    names.length === 0 || (redacted !== null && contents !== null && contents.fields.length > 0);
  const mayBeAnything = !isKnown && (isOfSource || contents !== null);
  const clean = cleaner(names, values);
  return {
    contents: contents === null || redacted === null ? null : redactContents(contents, names, redacted),
    redactText: (text) => (isKnown ? redactValues(redactPairs(text, names), values) : null),
    redactLabel(label, value) {
      if (value === null) return value;
      if (isRedactedLabel(label, names)) return REDACTION_MARK;
      if (isKnown) return clean(value);
      return mayBeAnything && (label === "id" || label === "referenceId") ? REDACTION_MARK : value;
    },
  };
}

/** Removes the values from a short text: the whole text, or parts of it that cannot be there by chance. */
function cleaner(names: readonly string[], values: readonly string[]): (text: string) => string {
  const long = values.filter(({ length }) => length >= MIN_PART_LENGTH);
  return (text) => (values.includes(text) ? REDACTION_MARK : redactValues(redactPairs(text, names), long));
}

/** The contents without redacted values in other fields, or in other parts of the signed text. */
function redactContents(
  contents: ShownContents,
  names: readonly string[],
  { values, isThere }: RedactedValues,
): ShownContents {
  const clean = cleaner(names, values);
  const shownContents = { fields: contents.fields.slice(0, MAX_FIELDS), signed: contents.signed };
  if (names.length === 0) return shownContents;
  const hidden = hideFields(shownContents, names, REDACTION_MARK);
  const fields = hidden.fields.map((field) => ({
    name: clean(field.name),
    value: hasNamed(field, names) ? REDACTION_MARK : field.value === null ? null : clean(field.value),
  }));
  const pieces = hidden.signed.map(({ name, text }) => ({ name, text: clean(text) }));
  // A value that has an "&" may reach over several pieces.
  const whole = pieces
    .map(({ text }) => text)
    .join("")
    .toLowerCase();
  const isSplit = values.some(
    (value) => value.length >= MIN_PART_LENGTH && whole.includes(value.toLowerCase()),
  );
  // A webhook is one piece, in which a value may be escaped as in JSON within JSON.
  const isOnePiece = pieces.length > 0 && pieces.every(({ name }) => name === null);
  const isChanged = fields.some(
    ({ name, value }, index) =>
      name !== contents.fields[index]?.name || value !== contents.fields[index]?.value,
  );
  const mayHaveValues = isThere || isChanged || contents.fields.length > MAX_FIELDS;
  return {
    fields,
    signed: isSplit || (isOnePiece && mayHaveValues) ? [{ name: null, text: REDACTION_MARK }] : pieces,
  };
}

/** Redacts pairs within a text, such as `userId=7` and `"userId": "7"`. */
function redactPairs(text: string, names: readonly string[]): string {
  return names.reduce(
    (rest, name) =>
      rest.replace(
        new RegExp(
          `(${escapeForPattern(name)}["']?\\s{0,8}[:=]\\s{0,8})("[^"]*"?|'[^']*'?|[^\\s&,;})\\]]+)`,
          "giu",
        ),
        (_, before: string) => before + REDACTION_MARK,
      ),
    text,
  );
}

/** Removes the values, however they are written: plain, as in JSON or a URL, in another case, or cut off at the end. */
function redactValues(text: string, values: readonly string[]): string {
  let rest = text;
  for (const value of values) {
    const spellings = new Set([value, JSON.stringify(value).slice(1, -1), addressSpelling(value)]);
    for (const spelling of spellings) {
      if (spelling.length <= rest.length)
        rest = rest.replace(new RegExp(escapeForPattern(spelling), "giu"), REDACTION_MARK);
    }
    rest = redactCutOff(rest, value);
  }
  return rest;
}

/** Long texts are cut before they are stored, with or without an ellipsis. The cut may be in the middle of a value. */
function redactCutOff(text: string, value: string): string {
  const hasEllipsis = text.endsWith("…");
  if (!hasEllipsis && text.length < MIN_CUT_LENGTH) return text;
  const whole = (hasEllipsis ? text.slice(0, -1) : text).toLowerCase();
  const start = value.slice(0, whole.length).toLowerCase();
  for (let length = Math.min(value.length - 1, start.length); length >= 1; length--) {
    if (whole.endsWith(start.slice(0, length))) return text.slice(0, whole.length - length) + REDACTION_MARK;
  }
  return text;
}

function addressSpelling(value: string): string {
  // encodeURIComponent throws for half a surrogate pair.
  return encodeURIComponent(value.replace(/\p{Surrogate}/gu, "\uFFFD"));
}

function escapeForPattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
