/**
 * A web page for the person on duty, on any runtime with web-standard requests.
 *
 * @module
 */

import type { ReceiverOrFactory } from "@payhooks/core/adapter";
import { createConsole } from "./console.ts";
import type { ConsoleOptions } from "./options.ts";

export type { ConsoleOptions, ConsoleUser } from "./options.ts";

/**
 * Answers a request. `platform` is the runtime's second argument, beside the request. A factory for the receiver gets
 * it.
 */
export type ConsoleHandler<Platform> = (request: Request, platform?: Platform) => Promise<Response>;

/**
 * Answers all requests of the console, at one address.
 *
 * @throws PayhooksError `ERR_OPTION_MISSING` without `authorize`, `ERR_OPTION_INVALID`.
 * @example
 * const handler = payhooksConsole(receiver, { authorize: async (request) => userOf(await sessionOf(request)) });
 */
export function payhooksConsole<Platform = unknown>(
  receiver: ReceiverOrFactory<Platform>,
  options: ConsoleOptions<Request>,
): ConsoleHandler<Platform> {
  const page = createConsole<Request, Platform>(receiver, options);
  return async (request, platform) => page.answer(request, await page.admit(request), platform as Platform);
}
