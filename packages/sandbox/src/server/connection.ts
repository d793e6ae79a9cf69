import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

/** The parts that come with every request: Node's own request and response, and the limit for its body. */
export interface ServerEnv {
  Bindings: Partial<HttpBindings>;
  Variables: { readonly maxBodyBytes: number };
}

/** Resets the caller's connection instead of answering. */
export function resetConnection(c: Context<ServerEnv>): Response {
  c.env.incoming?.socket.resetAndDestroy();
  return new Response(null, { status: 500, headers: { "x-hono-already-sent": "true" } });
}
