import type { ConsoleRight, ConsoleUser } from "./options.ts";

/** The header that requests which change something carry: another site's page cannot set it without being asked first. */
const ACTION_HEADER = "x-payhooks-console";

/**
 * Why a request that changes something is refused, or null. Three things have to be right: the header that only a script
 * of the same site can set, the body's type, for the same reason, and what the browser itself says of the page that asks.
 */
export function crossSiteProblem({ headers }: Request): string | null {
  if (headers.get(ACTION_HEADER) !== "1") return "The request does not come from the console's own script.";
  if (!/^application\/json\s*(?:;|$)/i.test(headers.get("content-type") ?? "")) {
    return "The request's content type is not application/json.";
  }
  return isFromSameSite(headers) ? null : "The request comes from another web site.";
}

/**
 * `Sec-Fetch-Site` is the browser's own judgement, which no proxy in between can confuse. Browsers leave it out where the
 * connection is not encrypted; there the origin has to be the host that was asked.
 */
function isFromSameSite(headers: Headers): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = headers.get("origin") ?? "";
  return URL.canParse(origin) && new URL(origin).host === headers.get("host");
}

/** Whether somebody has a right. */
export function may({ can }: ConsoleUser, right: ConsoleRight): boolean {
  return can.includes("view") && can.includes(right);
}
