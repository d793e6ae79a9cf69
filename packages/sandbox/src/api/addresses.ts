/** Which addresses the sandbox accepts. */
export interface AddressRules {
  /** Callback and webhook addresses may use plain HTTP to this machine. */
  readonly allowHttpLoopback: boolean;
  /** Every address must use HTTPS, even redirects and addresses of this machine. */
  readonly strictHttps: boolean;
}

const MAX_LENGTH = 2_048;

/** True for a host name or address of this machine. */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/^\[|\]$/g, "");
  return (
    name === "localhost" ||
    name.endsWith(".localhost") ||
    name === "::1" ||
    /^127(?:\.\d{1,3}){3}$/.test(name)
  );
}

/** What is wrong with a callback or webhook address (specification, Payment callback events), or null. */
export function problemOfReceiver(text: string, rules: AddressRules): string | null {
  const url = parse(text);
  if (url === null) return "must be an absolute http(s) address of at most 2048 characters";
  if (url.protocol === "https:") return null;
  if (rules.allowHttpLoopback && !rules.strictHttps && isLoopbackHost(url.hostname)) return null;
  return rules.allowHttpLoopback && !rules.strictHttps
    ? "must use HTTPS (plain HTTP is only allowed to this machine, such as http://127.0.0.1:3000)"
    : "must use HTTPS";
}

/** What is wrong with an address to which the customer's browser is redirected, or null. */
export function problemOfRedirect(text: string, rules: AddressRules): string | null {
  const url = parse(text);
  if (url === null) return "must be an absolute http(s) address of at most 2048 characters";
  return rules.strictHttps && url.protocol !== "https:" ? "must use HTTPS" : null;
}

function parse(text: string): URL | null {
  if (text.length > MAX_LENGTH || !URL.canParse(text)) return null;
  const url = new URL(text);
  return /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" ? url : null;
}
