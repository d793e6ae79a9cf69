import { Hono } from "hono";
import { answerError, answerFailure } from "../api/answers.ts";
import type { ResolvedOptions } from "../options.ts";
import type { ServerEnv } from "./connection.ts";
import { guard } from "./guard.ts";

/** Sets up what all requests share: the size limit of bodies, the guard for what needs no key, and error answers. */
export function createApp(options: ResolvedOptions): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>();
  app.use(async (c, next) => {
    c.set("maxBodyBytes", options.limits.bodyBytes);
    await next();
  });
  const keepOut = guard(options);
  app.use(async (c, next) => (c.req.path.startsWith("/api/") ? next() : keepOut(c, next)));
  app.notFound((c) => answerFailure(c, 404, `There is nothing at ${c.req.path}.`));
  app.onError((error, c) => answerError(c, error));
  return app;
}
