import type { Contents } from "@payhooks/core";
import { type ParsedJson, parseJsonText } from "@payhooks/core/events";

/**
 * A stored event with more values in its redacted fields cannot be redacted, because each value is searched for in every text.
 */
const MAX_VALUES = 200;
/** JSON within strings of JSON is searched this deep. A body itself is nested at most 16 deep. */
const MAX_DEPTH = 64;

/** The values of an event's redacted fields. */
export interface RedactedValues {
  /** Longest first: those that handlers get, and those that the signed text may have. */
  readonly values: readonly string[];
  /** True if there is such a field, if only with an empty value. */
  readonly isThere: boolean;
}

/** True if a name is in a path, such as `userId` or `data.userId` in `data.userId.first`. */
function isNamed(path: string, names: readonly string[]): boolean {
  return names.some((name) => `.${path}.`.includes(`.${name}.`));
}

/** The values of all redacted fields, at any depth. Null if there are too many to look for, or not all can be found. */
export function redactedValues(
  { fields, signed }: Pick<Contents, "fields" | "signed">,
  names: readonly string[],
): RedactedValues | null {
  const foundValues = new Set<string>();
  if (names.length === 0) return { values: [], isThere: false };
  for (const { name, value } of fields) {
    for (const { path, text } of value === null ? [] : textsIn(value, name)) {
      if (text === null) return null;
      if (isNamed(path, names)) foundValues.add(text);
      if (foundValues.size > MAX_VALUES) return null;
    }
  }
  for (const { name, text } of signed) {
    if (name !== null && isNamed(name, names)) foundValues.add(text.slice(text.indexOf("=") + 1));
    if (name === null) for (const number of otherSpellings(text, foundValues)) foundValues.add(number);
  }
  const isThere = foundValues.size > 0;
  foundValues.delete("");
  const values = [...foundValues].sort((a, b) => b.length - a.length);
  return values.length > MAX_VALUES ? null : { values, isThere };
}

/** True if a field has a redacted one within it: it is a list, or a string that has JSON in it. */
export function hasNamed({ name, value }: Contents["fields"][number], names: readonly string[]): boolean {
  if (value === null) return false;
  for (const { path } of textsIn(value, name)) if (isNamed(path, names)) return true;
  return false;
}

/**
 * A text, and all texts within it if it is JSON, each with its path. A `text` of null stands for what is nested too deeply, and
 * for JSON in which a name occurs twice, because parsing drops the first value.
 */
function* textsIn(
  text: string,
  path: string,
): Generator<{ readonly path: string; readonly text: string | null }> {
  const stack: { readonly value: unknown; readonly path: string; readonly depth: number }[] = [
    { value: text, path, depth: 0 },
  ];
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    const { value, path, depth } = item;
    if (depth > MAX_DEPTH) yield { path, text: null };
    else if (typeof value === "object" && value !== null) {
      // An element of a list is as secret as the list.
      for (const [name, inner] of Object.entries(value))
        stack.push({ value: inner, path: Array.isArray(value) ? path : `${path}.${name}`, depth: depth + 1 });
    } else {
      yield { path, text: typeof value === "string" ? value : JSON.stringify(value) };
      const inner = typeof value === "string" ? jsonIn(value) : null;
      if (inner !== null && inner.flaw !== null) yield { path, text: null };
      else if (inner !== null) stack.push({ value: inner.value, path, depth: depth + 1 });
    }
  }
}

/** The list or the object that a string is the JSON of; null for other strings. */
function jsonIn(text: string): ParsedJson | null {
  return /^\s*[[{]/.test(text) ? parseJsonText(text, MAX_DEPTH) : null;
}

/**
 * Numbers of a signed text that are written in another way than the found ones: as 10.50, or with more digits than a
 * number keeps.
 */
function otherSpellings(text: string, numbers: ReadonlySet<string>): readonly string[] {
  return (text.match(/-?\d[\d.eE+-]*/g) ?? []).filter((number) => numbers.has(String(Number(number))));
}
