import type { Context, MiddlewareHandler } from "hono";
import { isLoopbackHost } from "../api/addresses.ts";
import { failure } from "../api/answers.ts";

/** The options that decide who may use the pages and the control API, which need no key. */
export interface GuardOptions {
  /** Host names that are allowed besides those of this machine. */
  readonly allowedHosts: readonly string[];
  /** True if other machines may reach the sandbox. Then every host name is allowed. */
  readonly allowRemote: boolean;
  /** The base of the checkout's address. Under its host name, the checkout is allowed, and nothing else. */
  readonly publicUrl: string | undefined;
}

/**
 * Refuses requests of other web sites. A page in the developer's browser can send requests to this machine and, by DNS
 * rebinding, even read the answers.
 */
export function guard({ allowedHosts, allowRemote, publicUrl }: GuardOptions): MiddlewareHandler {
  const allowed = new Set(allowedHosts.map(nameOf));
  const publicName = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  return async (c, next) => {
    const host = c.req.header("host") ?? "";
    const name = nameOf(host);
    const isCheckout = name === publicName && /^\/(?:checkout|sandbox\/assets\/)/.test(c.req.path);
    if (!allowRemote && !isLoopbackHost(name) && !allowed.has(name) && !isCheckout) {
      return failure(
        c,
        403,
        `This sandbox does not answer under the host name ${name}. Allow it: allowedHosts: ["${name}"], or --allowed-host ${name}.`,
      );
    }
    if (!["GET", "HEAD"].includes(c.req.method) && !isSameOrigin(c, host)) {
      return failure(c, 403, "This request comes from another web site.");
    }
    return next();
  };
}

/** The name in a host, in lower case and without the port. */
function nameOf(host: string): string {
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : host;
}

function isSameOrigin(c: Context, host: string): boolean {
  const origin = c.req.header("origin");
  if (origin !== undefined) return origin === `http://${host}` || origin === `https://${host}`;
  return ["same-origin", "none", undefined].includes(c.req.header("sec-fetch-site"));
}
