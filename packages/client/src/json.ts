import type { JsonObject, JsonValue } from "@payhooks/core";

export type { JsonObject, JsonValue };

/** Parses JSON. Undefined if the text is not JSON: errors of `JSON.parse` quote the text, so they are not passed on. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Writes a JSON object from members whose values are JSON text already. Members without a value are left out. */
export function objectText(members: readonly (readonly [name: string, text: string | undefined])[]): string {
  const written = members.flatMap(([name, text]) =>
    text === undefined ? [] : [`${JSON.stringify(name)}:${text}`],
  );
  return `{${written.join(",")}}`;
}
