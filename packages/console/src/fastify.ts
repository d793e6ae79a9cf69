/**
 * Mounts the console on Fastify.
 *
 * @module
 */

import { getRequestListener } from "@hono/node-server";
import type { ReceiverOrFactory } from "@payhooks/core/adapter";
import type { FastifyPluginCallback, FastifyRequest } from "fastify";
import { createConsole } from "./console.ts";
import type { ConsoleOptions } from "./options.ts";

export type { ConsoleOptions, ConsoleUser } from "./options.ts";

/**
 * Answers all requests of the console, as a plugin: the plugin's prefix is its address.
 *
 * @throws PayhooksError `ERR_OPTION_MISSING` without `authorize`, `ERR_OPTION_INVALID`.
 * @example app.register(payhooksConsole(receiver, { authorize: (request) => request.user }), { prefix: "/payhooks" });
 */
export function payhooksConsole(
  receiver: ReceiverOrFactory,
  options: ConsoleOptions<FastifyRequest>,
): FastifyPluginCallback {
  const page = createConsole(receiver, options, true);
  return (app, _options, done) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", (_request, _payload, next) => next(null));
    app.all("/", async (request, reply) => {
      const user = await page.admit(request);
      reply.hijack();
      const listen = getRequestListener((webRequest) => page.answer(webRequest, user), {
        overrideGlobalObjects: false,
      });
      await listen(request.raw, reply.raw);
    });
    done();
  };
}
