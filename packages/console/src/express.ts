/**
 * Mounts the console on Express 4 or 5.
 *
 * @module
 */

import { getRequestListener } from "@hono/node-server";
import type { ReceiverOrFactory } from "@payhooks/core/adapter";
import type { Request as ExpressRequest, RequestHandler } from "express";
import { createConsole } from "./console.ts";
import type { ConsoleOptions } from "./options.ts";

export type { ConsoleOptions, ConsoleUser } from "./options.ts";

/**
 * Answers all requests of the console, at one address.
 *
 * @throws PayhooksError `ERR_OPTION_MISSING` without `authorize`, `ERR_OPTION_INVALID`.
 * @example app.use("/payhooks", payhooksConsole(receiver, { authorize: (request) => userOf(request.session) }));
 */
export function payhooksConsole(
  receiver: ReceiverOrFactory,
  options: ConsoleOptions<ExpressRequest>,
): RequestHandler {
  const page = createConsole(receiver, options, true);
  return (request, response, next) => {
    page
      .admit(request)
      .then(async (user) => {
        keepParsedBody(request);
        const listen = getRequestListener((webRequest) => page.answer(webRequest, user), LISTENER_OPTIONS);
        await listen(request, response);
      })
      .catch(next);
  };
}

const LISTENER_OPTIONS = { overrideGlobalObjects: false } as const;

/** If a parser has read the body already, its result is used. Nothing here depends on the exact bytes. */
function keepParsedBody(request: ExpressRequest & { rawBody?: unknown }): void {
  if (!request.readableDidRead || request.rawBody instanceof Buffer) return;
  request.rawBody = Buffer.from(JSON.stringify(request.body ?? null));
}
