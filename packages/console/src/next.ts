/**
 * Mounts the console on a route handler of the Next.js App Router.
 *
 * @module
 */

import type { ReceiverOrFactory } from "@payhooks/core/adapter";
import { createConsole } from "./console.ts";
import type { ConsoleOptions } from "./options.ts";

export type { ConsoleOptions, ConsoleUser } from "./options.ts";

/** A function that a `route.ts` exports under the names of HTTP methods. */
export type RouteHandler = (request: Request) => Promise<Response>;

/**
 * Answers all requests of the console, at one address.
 *
 * @throws PayhooksError `ERR_OPTION_MISSING` without `authorize`, `ERR_OPTION_INVALID`.
 * @example
 * const handler = payhooksConsole(receiver, { authorize });
 * export { handler as GET, handler as POST };
 */
export function payhooksConsole(receiver: ReceiverOrFactory, options: ConsoleOptions<Request>): RouteHandler {
  const page = createConsole(receiver, options);
  return async (request) => page.answer(request, await page.admit(request));
}
