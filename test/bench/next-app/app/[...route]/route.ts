/** The route of every variant; the first part of the path names it. The server process has what it does. */
import { connectWebhooks, paymentCallbacks, type RouteHandler } from "@payhooks/next";
import type { NextVariants } from "../../../child/next.ts";

const { nextVariants } = globalThis as unknown as { readonly nextVariants: NextVariants };
const handlers = new Map<string, RouteHandler>();

export function POST(request: Request): Promise<Response> {
  const name = new URL(request.url).pathname.split("/")[1] ?? "";
  const handler = handlers.get(name) ?? handlerOf(name);
  handlers.set(name, handler);
  return handler(request);
}

function handlerOf(name: string): RouteHandler {
  const variant = nextVariants.get(name);
  if (variant === undefined) throw new Error(`no variant ${name}`);
  if ("receiver" in variant) {
    const { receiver, scheme } = variant;
    return scheme === "rsa" ? paymentCallbacks(receiver) : connectWebhooks(receiver);
  }
  const { check } = variant;
  return async (request) => {
    const body = Buffer.from(await request.arrayBuffer());
    if (check !== null && !check(body, request.headers.get("x-connect-signature") ?? undefined)) {
      return Response.json({ error: "invalid signature" }, { status: 401 });
    }
    return Response.json({ received: true });
  };
}
