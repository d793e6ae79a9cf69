/** Bun's own server: with Hono, or with `@payhooks/core/fetch`, by the first argument. */
import { announce, secrets } from "./environment.ts";
import { fetchApp } from "./fetch-app.ts";
import { honoApp } from "./hono-app.ts";

declare const Bun: {
  readonly version: string;
  serve(options: { port: number; hostname: string; fetch(request: Request): Response | Promise<Response> }): {
    readonly port: number;
  };
};

const env = secrets();
const hono = process.argv[2] === "hono" ? honoApp(env) : null;
const { port } = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request) => (hono === null ? fetchApp(request, env) : hono.fetch(request)),
});
announce(port, `bun ${Bun.version}`);
