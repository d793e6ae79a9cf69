import type { JsonValue } from "../json.ts";

/** The text that replaces a secret. */
const BLOT = "[secret]";

/** Longer JSON is not parsed but shown as text: nobody reads it all. */
const MAX_JSON = 64 * 1024;
const MAX_TEXT = 2_000;

/**
 * The body of an error without secrets, in case the service, or a proxy before it, repeats what it was sent. JSON of at
 * most 64 KiB is parsed, which undoes its escapes. Of anything else, these are the first 2,000 characters.
 */
export function bodyWithout(secrets: readonly string[], text: string): JsonValue {
  const blot = blotter(secrets);
  try {
    if (text.length <= MAX_JSON) return JSON.parse(blot(JSON.stringify(JSON.parse(text)))) as JsonValue;
  } catch {
    // Not JSON, or nested too deeply to be written again.
  }
  return blot(text).slice(0, MAX_TEXT);
}

/** The members of a network error that contain no data of the request. */
const FACTS = ["code", "errno", "syscall", "address", "port", "hostname"] as const;
const MAX_CAUSES = 3;

/**
 * The error that `fetch` threw, without secrets in its texts. Other members are dropped, since a custom `fetch` may add
 * any, such as the request with its headers.
 */
export function errorWithout(secrets: readonly string[], thrown: unknown, depth = 1): unknown {
  const blot = blotter(secrets);
  if (!(thrown instanceof Error)) return typeof thrown === "string" ? blot(thrown) : undefined;
  const inner = thrown.cause ?? (thrown as Partial<AggregateError>).errors?.[0];
  const cause = depth < MAX_CAUSES ? errorWithout(secrets, inner, depth + 1) : undefined;
  const clean = new Error(blot(thrown.message), cause === undefined ? undefined : { cause });
  clean.name = blot(thrown.name);
  clean.stack = blot(String(thrown.stack));
  for (const name of FACTS) {
    const value = (thrown as Error & Partial<Record<string, unknown>>)[name];
    if (typeof value === "string") Object.assign(clean, { [name]: blot(value) });
    else if (typeof value === "number") Object.assign(clean, { [name]: value });
  }
  return clean;
}

/** Replaces secrets as they are, and as JSON and URLs write them. */
function blotter(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .filter((secret) => secret !== "")
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), inAddress(secret)])
    .sort((a, b) => b.length - a.length);
  return (text) => forms.reduce((rest, form) => rest.replaceAll(form, BLOT), text);
}

function inAddress(secret: string): string {
  // encodeURIComponent throws for half a surrogate pair.
  return encodeURIComponent(secret.replace(/\p{Surrogate}/gu, "\uFFFD"));
}
