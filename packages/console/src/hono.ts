/**
 * Mounts the console on Hono, on any runtime that Hono runs on.
 *
 * @module
 */

import type { ReceiverOrFactory } from "@payhooks/core/adapter";
import type { Context, Env, Handler } from "hono";
import { createConsole } from "./console.ts";
import type { ConsoleOptions } from "./options.ts";

export type { ConsoleOptions, ConsoleUser } from "./options.ts";

/**
 * Answers all requests of the console, at one address.
 *
 * @throws PayhooksError `ERR_OPTION_MISSING` without `authorize`, `ERR_OPTION_INVALID`.
 * @example app.all("/payhooks", payhooksConsole(receiver, { authorize: (c) => c.get("user") }));
 */
export function payhooksConsole<E extends Env = Env>(
  receiver: ReceiverOrFactory<E["Bindings"]>,
  options: ConsoleOptions<Context<E>>,
): Handler<E> {
  const page = createConsole<Context<E>, E["Bindings"]>(receiver, options);
  return async (context) => page.answer(context.req.raw, await page.admit(context), context.env);
}
