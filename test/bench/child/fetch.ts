/** `@payhooks/core/fetch` on node:http, behind the bridge of `@hono/node-server`. */
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { connectWebhooks, paymentCallbacks } from "@payhooks/core/fetch";
import { type Framework, HOST, listening } from "./framework.ts";

const listen = (path: string, route: (request: Request) => Promise<Response>) =>
  listening(
    createServer(
      getRequestListener(async (request) =>
        new URL(request.url).pathname === path ? route(request) : new Response("not found", { status: 404 }),
      ),
    ).listen(0, HOST),
  );

export const onFetch: Framework = {
  byHand: (path, check) =>
    listen(path, async (request) => {
      const body = Buffer.from(await request.arrayBuffer());
      if (check !== null && !check(body, request.headers.get("x-connect-signature") ?? undefined)) {
        return Response.json({ error: "invalid signature" }, { status: 401 });
      }
      return Response.json({ received: true });
    }),
  ours: (path, scheme, receiver) =>
    listen(path, scheme === "rsa" ? paymentCallbacks(receiver) : connectWebhooks(receiver)),
};
