import { hostName, isLoopbackHost } from "@payhooks/pages";
import type { DecisionKind } from "./answers.ts";
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
export function crossSiteProblem(request: Request): string | null {
  const { headers } = request;
  if (headers.get(ACTION_HEADER) !== "1") return "The request does not come from the console's own script.";
  if (!/^application\/json\s*(?:;|$)/i.test(headers.get("content-type") ?? "")) {
    return "The request's content type is not application/json.";
  }
  return isFromSameSite(request)
    ? null
    : "The request comes from another web site. If it does not: let your proxy pass the Host header on, or use HTTPS.";
}

/**
 * `Sec-Fetch-Site` is the browser's own judgement, which a proxy in between does not affect. Browsers leave it out if
 * the connection is not encrypted. Then the origin must be the host of the request.
 */
function isFromSameSite(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = request.headers.get("origin") ?? "";
  if (!/^https?:/.test(origin) || !URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  const requestOrigin = `${protocol}//${hostOf(request)}`;
  return URL.canParse(requestOrigin) && new URL(requestOrigin).host === host;
}

/** The Host field. HTTP/2 has it in the address of the request, as `:authority`. */
function hostOf({ headers, url }: Request): string {
  return headers.get("host") ?? new URL(url).host;
}

/**
 * Why a request is refused that was sent to a host under which the console does not answer, or null. A browser that
 * shows a page of another site sends that site's name, even if the name has been made to point to this server.
 * `X-Forwarded-Host` is not read: anybody can send it.
 *
 * @param isUrlSent whether the address of the request is the sent address, such as an absolute address in the request line. Some
 * frameworks make one of their own configuration instead.
 */
export function hostProblem(
  request: Request,
  allowedHosts: ReadonlySet<string | null>,
  isUrlSent: boolean,
): string | null {
  const hosts = new Set([hostOf(request), ...(isUrlSent ? [new URL(request.url).host] : [])]);
  for (const host of hosts) {
    const name = hostName(host);
    if (name === null) return "The console does not answer a request without a valid Host header.";
    if (isLoopbackHost(name) || allowedHosts.has(name)) continue;
    return `The console does not answer under the host name ${name.slice(0, 255)}. If this is the console's own name, allow it: allowedHosts: [${JSON.stringify(name.slice(0, 255))}]. If it is a name inside of your network, let your proxy pass the Host header on, and allow the public name.`;
  }
  return null;
}

/** The right that a decision needs. A retry runs handlers, as a replay does. */
export function rightFor(decision: DecisionKind): ConsoleRight {
  return decision === "retry" ? "replay" : decision;
}

/** Tells if a user has a right. */
export function isPermitted({ can: rights }: ConsoleUser, right: ConsoleRight): boolean {
  return rights.includes("view") && rights.includes(right);
}
