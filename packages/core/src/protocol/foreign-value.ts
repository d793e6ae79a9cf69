/**
 * Reads foreign values. A value that was thrown may be anything: a revoked proxy, an error of an RPC client whose properties are
 * fetched when they are read, an object without a text. Reading one must not throw, because that would hide what was thrown.
 */

/** A property of any value; undefined if there is none, or if reading it throws. */
export function propertyOf(value: unknown, name: PropertyKey): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  try {
    return (value as Readonly<Record<PropertyKey, unknown>>)[name];
  } catch {
    return undefined;
  }
}

/** True for an error. False if even this check would throw. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** The text of any value, such as `String` gives it. */
export function stringOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return "a value that has no text";
  }
}

/** A given value, for a message: the beginning of a text in quotation marks, and only the kind of an object. */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  if (typeof value === "function") return "a function";
  return typeof value === "object" && value !== null ? "an object" : stringOf(value);
}
