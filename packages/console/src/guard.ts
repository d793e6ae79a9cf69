import type { ConsoleRight, ConsoleUser } from "./options.ts";

/**
 * The header of requests that change something. A page of another site can set it only after a preflight request, which
 * the console does not allow.
 */
const ACTION_HEADER = "x-payhooks-console";

/**
 * Why a request that changes something is refused, or null. Three things must be right: the header and the content
 * type, which only a script of the same site can set, and what the browser says about the request's origin.
 */
export function crossSiteProblem({ headers }: Request): string | null {
  if (headers.get(ACTION_HEADER) !== "1") return "The request does not come from the console's own script.";
  if (!/^application\/json\s*(?:;|$)/i.test(headers.get("content-type") ?? "")) {
    return "The request's content type is not application/json.";
  }
  return isFromSameSite(headers)
    ? null
    : "The request comes from another web site. If it does not: let your proxy pass the Host header on, or use HTTPS.";
}

/**
 * `Sec-Fetch-Site` is the browser's own judgement, which a proxy in between does not affect. Browsers leave it out if
 * the connection is not encrypted. Then the origin must be the host of the request.
 */
function isFromSameSite(headers: Headers): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = headers.get("origin") ?? "";
  return URL.canParse(origin) && new URL(origin).host === headers.get("host");
}

/** Whether a user has a right. */
export function may({ can }: ConsoleUser, right: ConsoleRight): boolean {
  return can.includes("view") && can.includes(right);
}
