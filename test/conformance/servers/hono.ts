import { serve } from "@hono/node-server";
import { announce, secrets } from "./environment.ts";
import { honoApp } from "./hono-app.ts";

serve({ fetch: honoApp(secrets()).fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => announce(port));
