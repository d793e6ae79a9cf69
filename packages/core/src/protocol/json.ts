/** A JSON value as `JSON.parse` gives it. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
/** A JSON object as `JSON.parse` gives it. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/** A request body that is a JSON object. */
export interface JsonBody {
  readonly object: JsonObject;
  /** The exact text, because `JSON.parse` loses details such as how a number was written. */
  readonly text: string;
  /** Why the object must not be used although it is valid JSON; null if it may be used. */
  readonly flaw: "duplicate names" | "nested too deeply" | null;
}

/** Objects and arrays may nest this deep; the deepest documented body has two levels. */
const MAX_DEPTH = 16;

/** Shorter bodies may have any number of parts, because parsing them takes a fraction of a millisecond. */
const SHORT_BODY_BYTES = 8 * 1024;
/** A payment callback has about 25 parts. */
const MAX_UNVERIFIED_PARTS = 1_000;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads a body as strict JSON: UTF-8 without errors and without a byte order mark, an object at the top. Duplicate names and
 * deep nesting are reported as a flaw: `JSON.parse` hides the former, as would any reviver, and recursive code fails on the
 * latter.
 *
 * @returns null when the bytes are not a JSON object at all.
 */
export function parseJsonBody(bytes: Uint8Array): JsonBody | null {
  const parsed = parseJson(bytes);
  if (parsed === null) return null;
  const { value, text, flaw } = parsed;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return { object: value as JsonObject, text, flaw };
}

/** A JSON value that was read strictly. */
export interface ParsedJson {
  readonly value: JsonValue;
  /** Why the value must not be used although its text is valid JSON; null if it may be used. */
  readonly flaw: JsonBody["flaw"];
}

/** Reads any JSON value with the same rules as {@link parseJsonBody}. Null for bytes that are no JSON. */
export function parseJson(bytes: Uint8Array): (ParsedJson & Pick<JsonBody, "text">) | null {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return null;
  }
  const parsed = parseJsonText(text);
  return parsed === null ? null : { ...parsed, text };
}

/**
 * Reads a JSON value of a text. Names that occur twice in an object, and objects and arrays that nest more than `maxDepth` deep,
 * are a flaw. By default they may nest as deep as in a body: 16 levels.
 *
 * @returns null for a text that is no JSON.
 */
export function parseJsonText(text: string, maxDepth: number = MAX_DEPTH): ParsedJson | null {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return { value, flaw: null };
  const { nameCount, hasEscapedName, isTooDeep } = shapeOf(text, maxDepth);
  if (isTooDeep) return { value, flaw: "nested too deeply" };
  if (hasEscapedName) value = readWithEscapedNames(text);
  // If the text has more names than the value, a name was given twice.
  return { value, flaw: nameCount === countNames(value) ? null : "duplicate names" };
}

/**
 * True for a body of more than 8 KiB with more than `maxParts` members, elements and nested values, because parsing it
 * would take milliseconds. The default is for a flow whose signature is inside the JSON: there, bodies of strangers
 * have to be parsed too (decision 0010).
 */
export function isUnwieldy(bytes: Uint8Array, maxParts: number = MAX_UNVERIFIED_PARTS): boolean {
  if (bytes.byteLength <= SHORT_BODY_BYTES) return false;
  let parts = 0;
  let isInString = false;
  for (let i = 0; i < bytes.byteLength; i++) {
    const byte = bytes[i];
    if (byte === 0x22) isInString = !isInString;
    else if (isInString) {
      if (byte === 0x5c) i++;
    } else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) {
      if (++parts > maxParts) return true;
    }
  }
  return false;
}

/** The facts about valid JSON that can be found without parsing it. */
interface Shape {
  /** How many names there are, as written. */
  readonly nameCount: number;
  readonly hasEscapedName: boolean;
  readonly isTooDeep: boolean;
}

function shapeOf(text: string, maxDepth: number): Shape {
  let nameCount = 0;
  let depth = 0;
  const mayHaveEscapes = text.includes("\\");
  let hasEscapedName = false;
  let [start, end] = [0, 0];
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: // a string: to its closing quote
        start = i;
        i = end = endOfString(text, i);
        break;
      case 0x3a: // a colon outside of strings follows a name
        nameCount++;
        hasEscapedName ||= mayHaveEscapes && text.slice(start, end).includes("\\");
        break;
      case 0x7b:
      case 0x5b:
        if (++depth > maxDepth) return { nameCount, hasEscapedName, isTooDeep: true };
        break;
      case 0x7d:
      case 0x5d:
        depth--;
        break;
    }
  }
  return { nameCount, hasEscapedName, isTooDeep: false };
}

/**
 * Reads valid JSON whose names have escapes. `JSON.parse` of Node.js 24 mistakes such a name for another one, if it has parsed
 * similar ones before (nodejs/node#63785). It reads single strings correctly.
 */
function readWithEscapedNames(text: string): JsonValue {
  const value = text.trim();
  if (value.startsWith("{"))
    return Object.fromEntries([...rawMembers(value)].map(([name, raw]) => [name, readWithEscapedNames(raw)]));
  if (value.startsWith("[")) return rawElements(value).map(readWithEscapedNames);
  return JSON.parse(value) as JsonValue;
}

/** The elements of a JSON array as raw text. */
function rawElements(text: string): readonly string[] {
  const elements: string[] = [];
  let start = 1;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = endOfString(text, i);
    else if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x2c || code === 0x7d || code === 0x5d) {
      if (depth === 1 && text.slice(start, i).trim() !== "") elements.push(text.slice(start, i));
      if (depth === 1) start = i + 1;
      if (code !== 0x2c) depth--;
    }
  }
  return elements;
}

function countNames(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countNames(item);
    return count;
  }
  for (const member of Object.values(value as JsonObject)) {
    count++;
    if (typeof member === "object" && member !== null) count += countNames(member);
  }
  return count;
}

/** The index of the quote that closes the string which opens at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, index: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(index - 1 - backslashes) === 0x5c) backslashes++;
  return backslashes % 2 === 1;
}

/**
 * The members of a JSON object with their values as raw text, exactly as written: `10.0` stays `10.0`. `text` must be a JSON
 * object. If a name is given twice, the last one counts, as with `JSON.parse`.
 */
export function rawMembers(text: string): Map<string, string> {
  const members = new Map<string, string>();
  let name: string | null = null;
  let start = 0;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) {
      const end = endOfString(text, i);
      if (depth === 1 && name === null) name = JSON.parse(text.slice(i, end + 1)) as string;
      i = end;
    } else if (code === 0x3a && depth === 1) {
      start = i + 1;
    } else if (code === 0x7b || code === 0x5b) {
      depth++;
    } else if (code === 0x2c || code === 0x7d || code === 0x5d) {
      if (depth === 1 && name !== null) {
        members.set(name, text.slice(start, i).trim());
        name = null;
      }
      if (code !== 0x2c) depth--;
    }
  }
  return members;
}

/** The text that these bytes are in UTF-8. They are not copied first. */
export function decodeUtf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/**
 * An object without a prototype, for members whose names are known beforehand. For names that others choose, use
 * `Object.create(null)`, which keeps members in a hash table. Freezing such an object makes a hidden class for it alone, which
 * only a full garbage collection removes.
 */
export function withoutPrototype(): Record<string, unknown> {
  return Object.setPrototypeOf({}, null) as Record<string, unknown>;
}

/**
 * Freezes a parsed value deeply, and removes its prototypes, so that a name such as `constructor` is never found by accident.
 * It works in place, because copying thousands of small objects takes several times as long.
 */
export function deepFreeze<T extends JsonValue>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const member of Object.values(value as JsonObject)) deepFreeze(member);
  return Object.freeze(Array.isArray(value) ? value : Object.setPrototypeOf(value, null)) as T;
}
