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

/** True for a text that is not empty. */
export function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** The first member with one of the names and the right kind of value. It looks in `data` first, then in the body. */
export function findMember<T extends JsonValue>(
  json: JsonValue | undefined,
  names: readonly string[],
  isRight: (value: JsonValue | undefined) => value is T,
): T | undefined {
  if (!isObject(json)) return undefined;
  for (const object of [json.data, json]) {
    if (!isObject(object)) continue;
    for (const name of names) {
      const value = Object.hasOwn(object, name) ? object[name] : undefined;
      if (isRight(value)) return value;
    }
  }
  return undefined;
}

/** Writes a JSON object from members whose values are JSON text already. Members without a value are left out. */
export function objectText(members: readonly (readonly [name: string, text: string | undefined])[]): string {
  const memberTexts = members.flatMap(([name, text]) =>
    text === undefined ? [] : [`${JSON.stringify(name)}:${text}`],
  );
  return `{${memberTexts.join(",")}}`;
}
