/** The targets of the fuzzer: the adapters on Node, each in a server of its own in this process. */
import { createHmac, timingSafeEqual, verify } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { type AnyEvent, createReceiver, memoryInbox, type Notice, type Receiver } from "@payhooks/core";
import * as web from "@payhooks/core/fetch";
import * as onExpress from "@payhooks/express";
import * as onFastify from "@payhooks/fastify";
import * as onHono from "@payhooks/hono";
import * as onNext from "@payhooks/next";
import express5 from "express";
import express4 from "express4";
import Fastify from "fastify";
import { Hono } from "hono";
import { systemClock } from "../../../packages/core/src/time/clock.ts";
import { viaFetch } from "../../conformance/servers/node-bridge.ts";
import { silent } from "../../support/silent.ts";
import { PATHS } from "./mutations.ts";
import { KEYS, NOW, SECRET } from "./signed.ts";

/** A server, and what it did. */
export interface Target {
  readonly port: number;
  /** Events that handlers were run with. */
  readonly ran: AnyEvent[];
  readonly notices: Notice[];
  close(): Promise<void>;
}

/** How a server with a receiver on it is started. */
export type Start = (receiver: Receiver) => Promise<{ readonly port: number; close(): Promise<unknown> }>;

async function listening(server: Server): Promise<{ port: number; close(): Promise<unknown> }> {
  await new Promise<void>((resolve) => {
    if (server.listening) resolve();
    else server.listen(0, "127.0.0.1", () => resolve());
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      return closed;
    },
  };
}

const onExpressOf =
  (express: typeof express5): Start =>
  (receiver) => {
    const app = express();
    app.use(PATHS.payments, onExpress.paymentCallbacks(receiver));
    app.use(PATHS.connect, onExpress.connectWebhooks(receiver));
    return listening(createServer(app));
  };

export const ADAPTERS: Readonly<Record<string, Start>> = {
  "Express 5": onExpressOf(express5),
  "Express 4": onExpressOf(express4 as unknown as typeof express5),
  async Fastify(receiver) {
    const app = Fastify();
    app.register(onFastify.paymentCallbacks(receiver), { prefix: PATHS.payments });
    app.register(onFastify.connectWebhooks(receiver), { prefix: PATHS.connect });
    await app.ready();
    return listening(app.server);
  },
  Hono(receiver) {
    const app = new Hono();
    app.all(PATHS.payments, onHono.paymentCallbacks(receiver));
    app.all(PATHS.connect, onHono.connectWebhooks(receiver));
    return new Promise((resolve) => {
      const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, () =>
        resolve(listening(server as Server)),
      );
    });
  },
  fetch(receiver) {
    return onRoutes(web.paymentCallbacks(receiver), web.connectWebhooks(receiver));
  },
  /** Its route handlers alone, called as Next.js calls them, but for `after`: the receiver has been started. */
  async "Next.js"(receiver) {
    await receiver.start();
    return onRoutes(onNext.paymentCallbacks(receiver), onNext.connectWebhooks(receiver));
  },
};

type Route = (request: Request) => Promise<Response>;

function onRoutes(payments: Route, connect: Route): ReturnType<Start> {
  const app: Route = (request) =>
    new URL(request.url).pathname === PATHS.payments ? payments(request) : connect(request);
  return listening(createServer(viaFetch(app)));
}

/** A receiver in memory behind an adapter, whose time stands still at {@link NOW}. */
export async function startTarget(start: Start): Promise<Target> {
  const clock = { ...systemClock, now: () => NOW };
  const ran: AnyEvent[] = [];
  const notices: Notice[] = [];
  const receiver = createReceiver({
    payments: { publicKey: KEYS.publicKey },
    connect: { secret: SECRET },
    inbox: memoryInbox({ clock }),
    clock,
    alerts: { threshold: 1_000_000_000 },
    logger: silent,
  });
  const write = (event: AnyEvent): void => void ran.push(event);
  receiver.onDeposit({ SUCCESS: write, FAILED: write, PENDING: write });
  receiver.onWithdrawal({ SUCCESS: write, FAILED: write, PENDING: write });
  receiver.onConnectedAccountApproved(write).onConnectedAccountDeclined(write);
  receiver.onSettlementApproved(write).onSettlementDeclined(write);
  receiver.observe((notice) => notices.push(notice));
  const { port, close } = await start(receiver);
  return {
    port,
    ran,
    notices,
    async close() {
      await close();
      await receiver.close({ graceMs: 1_000 });
    },
  };
}

/** A receiver as anyone would write it after reading the specification: what the fuzzer has to find out. */
export async function startNaive(): Promise<Target> {
  const ran: AnyEvent[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts);
      try {
        const genuine =
          request.url === PATHS.payments ? naivePayment(body) : naiveWebhook(body, request.headers);
        if (genuine && request.url === PATHS.payments)
          ran.push(JSON.parse(body.toString("utf8")) as AnyEvent);
        response.writeHead(genuine ? 200 : 401, { "content-type": "application/json" });
        response.end(genuine ? '{"received":true}' : '{"error":{"code":"ERR_SIGNATURE_INVALID"}}');
      } catch (error) {
        response.writeHead(500).end(String(error));
      }
    });
  });
  const { port, close } = await listening(server);
  return { port, ran, notices: [], close: async () => void (await close()) };
}

function naivePayment(body: Buffer): boolean {
  const { signature, ...fields } = JSON.parse(body.toString("utf8")) as Record<string, unknown>;
  const names = Object.keys(fields).filter((name) => fields[name] !== null);
  const canonical = names
    .sort()
    .map((name) => `${name}=${fields[name]}`)
    .join("&");
  return verify("sha256", Buffer.from(canonical), KEYS.publicKey, Buffer.from(String(signature), "base64"));
}

function naiveWebhook(
  body: Buffer,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): boolean {
  const text = JSON.stringify(JSON.parse(body.toString("utf8")));
  const claimed = Buffer.from(
    String(headers["x-connect-signature"] ?? "")
      .padEnd(71)
      .slice(0, 71),
  );
  const digest = `sha256=${createHmac("sha256", SECRET).update(text).digest("hex")}`;
  return timingSafeEqual(Buffer.from(digest.padEnd(claimed.byteLength)), claimed);
}
