/** Deno's own server: with Hono, or with `@payhooks/core/fetch`, by the first argument. */
import { announce, secrets } from "./environment.ts";
import { fetchApp } from "./fetch-app.ts";
import { honoApp } from "./hono-app.ts";

declare const Deno: {
  readonly version: { readonly deno: string };
  serve(
    options: { port: number; hostname: string; onListen(address: { readonly port: number }): void },
    handler: (request: Request) => Response | Promise<Response>,
  ): unknown;
};

const env = secrets();
const hono = process.argv[2] === "hono" ? honoApp(env) : null;
const onListen = ({ port }: { readonly port: number }): void => announce(port, `deno ${Deno.version.deno}`);
Deno.serve({ port: 0, hostname: "127.0.0.1", onListen }, (request) =>
  hono === null ? fetchApp(request, env) : hono.fetch(request),
);
