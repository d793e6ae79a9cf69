/** A Cloudflare Worker: with Hono, or with `@payhooks/core/fetch`, by the variable APP. */
import type { FetchContext } from "@payhooks/core/fetch";
import type { ExecutionContext, Hono } from "hono";
import type { Secrets } from "../application.ts";
import { fetchApp } from "./fetch-app.ts";
import { honoApp } from "./hono-app.ts";

interface Env extends Secrets {
  readonly APP: string;
}

let hono: Hono | null = null;

const worker = {
  async fetch(request: Request, env: Env, context: FetchContext): Promise<Response> {
    if (env.APP !== "hono") return fetchApp(request, env, context);
    hono ??= honoApp(env);
    return hono.fetch(request, env, context as ExecutionContext);
  },
};

export default worker;
