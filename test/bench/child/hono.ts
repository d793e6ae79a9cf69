import type { Server } from "node:http";
import { serve } from "@hono/node-server";
import { connectWebhooks, paymentCallbacks } from "@payhooks/hono";
import { Hono } from "hono";
import { type Framework, HOST, listening } from "./framework.ts";

const listen = (app: Hono): Promise<Server> =>
  listening(serve({ fetch: app.fetch, port: 0, hostname: HOST }) as Server);

export const onHono: Framework = {
  byHand(path, check) {
    const app = new Hono();
    app.post(path, async (c) => {
      const body = Buffer.from(await c.req.arrayBuffer());
      if (check !== null && !check(body, c.req.header("x-connect-signature"))) {
        return c.json({ error: "invalid signature" }, 401);
      }
      return c.json({ received: true }, 200);
    });
    return listen(app);
  },
  ours(path, scheme, receiver) {
    const app = new Hono();
    app.all(path, scheme === "rsa" ? paymentCallbacks(receiver) : connectWebhooks(receiver));
    return listen(app);
  },
};
