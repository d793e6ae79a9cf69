import { hostName, isAddress, isLoopbackHost } from "@payhooks/pages";
import type { Context, MiddlewareHandler } from "hono";
import { answerFailure } from "../api/answers.ts";

/** The options that decide who may use the pages and the control API, which need no key. */
export interface GuardOptions {
  /** Host names that are allowed besides those of this machine. */
  readonly allowedHosts: readonly string[];
  /**
   * True if other machines may reach the sandbox. Then its addresses are allowed, and names without a dot, which no
   * other web site can have.
   */
  readonly allowRemote: boolean;
  /**
   * The base of the checkout's address. Under its host name, the checkout is allowed, and nothing else. Its pages may also send
   * the checkout's form under another host name, since a tunnel may change it.
   */
  readonly publicUrl: string | undefined;
}

/**
 * Refuses requests of other web sites. A page in the developer's browser can send requests to this machine and, by DNS
 * rebinding, even read the answers.
 */
export function guard({ allowedHosts, allowRemote, publicUrl }: GuardOptions): MiddlewareHandler {
  const allowed = new Set(allowedHosts.map(hostName));
  const publicAddress = publicUrl === undefined ? null : new URL(publicUrl);
  const publicName = publicAddress === null ? null : hostName(publicAddress.host);
  const isOurs = (name: string, path: string): boolean =>
    isLoopbackHost(name) ||
    allowed.has(name) ||
    (allowRemote && (isAddress(name) || !name.includes("."))) ||
    (name === publicName && /^\/(?:checkout|sandbox\/assets\/)/.test(path));
  return async (c, next) => {
    // The address of the request is what was sent: an absolute one in the request line, `:authority`, or Host.
    const sentHost = new URL(c.req.url).host;
    const host = c.req.header("host") ?? sentHost;
    for (const candidate of new Set([host, sentHost])) {
      const name = hostName(candidate);
      if (name !== null && isOurs(name, c.req.path)) continue;
      return answerFailure(
        c,
        403,
        name === null
          ? "This sandbox does not answer requests without a host name."
          : `This sandbox does not answer under the host name ${name}. Allow it: allowedHosts: ["${name}"], or --allowed-host ${name}.`,
      );
    }
    const origins = [`http://${host}`, `https://${host}`];
    if (publicAddress !== null && c.req.path.startsWith("/checkout/")) origins.push(publicAddress.origin);
    if (!["GET", "HEAD"].includes(c.req.method) && !isSameOrigin(c, origins)) {
      return answerFailure(
        c,
        403,
        "This request comes from another web site. If that is your tunnel to the sandbox, let it pass the Host header on. For the checkout, you can also set publicUrl, or --public-url, to the tunnel's address.",
      );
    }
    return next();
  };
}

function isSameOrigin(c: Context, origins: readonly string[]): boolean {
  const origin = c.req.header("origin");
  if (origin !== undefined) return origins.includes(origin);
  return ["same-origin", "none", undefined].includes(c.req.header("sec-fetch-site"));
}
