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

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/**
 * The text of one member of a JSON object, exactly as it was written: `10.50` stays `10.50`, unlike a parsed number.
 * `text` must be a valid JSON object. If a name occurs twice, the last one counts, as in `JSON.parse`.
 */
export function memberText(text: string, wanted: string): string | undefined {
  let depth = 0;
  let name: string | null = null;
  let start = 0;
  let found: string | undefined;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const closes = token === "}" || token === "]";
    if (depth === 1 && (closes || token === ",")) {
      if (name === wanted) found = text.slice(start, index).trim();
      name = null;
    }
    if (closes) depth--;
    else if (token === "{" || token === "[") depth++;
    else if (depth === 1 && token === ":") start = index + 1;
    else if (depth === 1 && name === null && token.startsWith('"')) name = JSON.parse(token) as string;
  }
  return found;
}

/** Writes a JSON object from members whose values are JSON text already. Members without a value are left out. */
export function objectText(members: readonly (readonly [name: string, text: string | undefined])[]): string {
  const written = members.flatMap(([name, text]) =>
    text === undefined ? [] : [`${JSON.stringify(name)}:${text}`],
  );
  return `{${written.join(",")}}`;
}
