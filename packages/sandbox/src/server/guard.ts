import type { Context, MiddlewareHandler } from "hono";
import { isLoopbackHost } from "../api/addresses.ts";
import { failure } from "../api/answers.ts";

/** The options that decide who may use the pages and the control API, which need no key. */
export interface GuardOptions {
  /** Host names that are allowed besides those of this machine. */
  readonly allowedHosts: readonly string[];
  /** True if other machines may reach the sandbox. Then every host name is allowed. */
  readonly allowRemote: boolean;
}

/**
 * Refuses requests of other web sites. A page in the developer's browser can send requests to this machine and, by DNS
 * rebinding, even read the answers.
 */
export function guard({ allowedHosts, allowRemote }: GuardOptions): MiddlewareHandler {
  return async (c, next) => {
    const host = c.req.header("host") ?? "";
    const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : "";
    if (!allowRemote && !isLoopbackHost(name) && !allowedHosts.includes(name)) {
      return failure(
        c,
        403,
        `The host name ${JSON.stringify(name)} is not allowed: see the option allowedHosts.`,
      );
    }
    if (!["GET", "HEAD"].includes(c.req.method) && !isSameOrigin(c, host)) {
      return failure(c, 403, "This request comes from another web site.");
    }
    return next();
  };
}

function isSameOrigin(c: Context, host: string): boolean {
  const origin = c.req.header("origin");
  if (origin !== undefined) return origin === `http://${host}` || origin === `https://${host}`;
  return ["same-origin", "none", undefined].includes(c.req.header("sec-fetch-site"));
}
