import { kindOf } from "./kind-of.ts";

/** True if a host is this machine itself: `localhost`, 127.0.0.0/8 or `[::1]`. */
function isLoopback(hostname: string): boolean {
  return (
    hostname === "localhost" ||
    hostname.endsWith(".localhost") ||
    hostname === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(hostname)
  );
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const FORBIDDEN_IN_URL_PATTERN = /[\s\u0000-\u001f\u007f]/;

/**
 * Parses an absolute URL, or says what is wrong with the text. The URL parser alone would silently drop line breaks.
 */
export function parseUrl(text: unknown): URL | string {
  if (typeof text !== "string") return `is ${kindOf(text)}, not text`;
  if (text.trim() === "") return "is blank";
  if (FORBIDDEN_IN_URL_PATTERN.test(text)) return "contains white space or control characters";
  if (!URL.canParse(text)) return "is not an absolute URL";
  return new URL(text);
}

/** Parses a URL with HTTPS or, if that is allowed, with HTTP to this machine. Otherwise it says what is wrong. */
export function parseSecureUrl(text: unknown, allowHttpLoopback: boolean): URL | string {
  const url = parseUrl(text);
  if (typeof url === "string") return url;
  if (!/^https?:\/\//i.test(String(text))) return "does not begin with https://";
  if (url.protocol === "https:" || (allowHttpLoopback && isLoopback(url.hostname))) return url;
  return isLoopback(url.hostname) ? "uses HTTP" : "uses HTTP, which anyone on the way can read and change";
}
