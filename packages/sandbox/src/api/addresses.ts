import { isLoopbackHost } from "@payhooks/pages";

/** The rules for the addresses that the sandbox accepts. */
export interface AddressRules {
  /** Callback and webhook addresses may use plain HTTP to this machine. */
  readonly allowHttpLoopback: boolean;
  /** Every address must use HTTPS, even redirects and addresses of this machine. */
  readonly strictHttps: boolean;
}

const FULL_ADDRESS_RULE = "must be a full address such as https://shop.example/paid";

/** Describes the fault of a callback or webhook address (specification, Payment callback events); null if there is none. */
export function problemOfReceiver(text: string, rules: AddressRules): string | null {
  if (!/^https?:\/\//i.test(text)) return "must begin with https://";
  if (!URL.canParse(text)) return FULL_ADDRESS_RULE;
  const url = new URL(text);
  if (url.protocol === "https:") return null;
  if (!rules.allowHttpLoopback || rules.strictHttps) return "must use HTTPS";
  return isLoopbackHost(url.hostname)
    ? null
    : "must use HTTPS (plain HTTP is only allowed to this machine, such as http://127.0.0.1:3000)";
}

/** The schemes whose content a browser would run or show itself. */
const FORBIDDEN_SCHEMES = new Set(["javascript:", "data:", "vbscript:", "blob:", "file:", "about:"]);

/**
 * Describes the fault of an address to which the customer's browser is redirected; null if there is none. It may be the address
 * of an app, such as `myapp://paid`.
 */
export function problemOfRedirect(text: string, rules: AddressRules): string | null {
  if (!URL.canParse(text)) return FULL_ADDRESS_RULE;
  const { protocol } = new URL(text);
  if (FORBIDDEN_SCHEMES.has(protocol)) return `must be the address of a page or an app, not ${protocol}`;
  return rules.strictHttps && protocol !== "https:" ? "must use HTTPS" : null;
}
