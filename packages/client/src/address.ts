/** True for a host that is this machine itself: `localhost`, 127.0.0.0/8 or `[::1]`. */
function isLoopback(hostname: string): boolean {
  return (
    hostname === "localhost" ||
    hostname.endsWith(".localhost") ||
    hostname === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(hostname)
  );
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const NOT_IN_A_URL = /[\s\u0000-\u001f\u007f]/;

/** An absolute URL, or in words why the text is none. The URL parser itself would silently drop line breaks. */
export function parseUrl(text: unknown): URL | string {
  if (typeof text !== "string") return `is a ${typeof text}, not text`;
  if (text.trim() === "") return "is blank";
  if (NOT_IN_A_URL.test(text)) return "contains white space or control characters";
  if (!URL.canParse(text)) return "is not an absolute URL";
  return new URL(text);
}

/** An absolute URL with HTTPS, or with HTTP to this machine where that is allowed; else in words why not. */
export function parseSecureUrl(text: unknown, allowHttpLoopback: boolean): URL | string {
  const url = parseUrl(text);
  if (typeof url === "string") return url;
  if (!/^https?:\/\//i.test(String(text))) return "does not begin with https://";
  if (url.protocol === "https:" || (allowHttpLoopback && isLoopback(url.hostname))) return url;
  return isLoopback(url.hostname) ? "uses HTTP" : "uses HTTP, which anyone on the way can read and change";
}
