import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Receiver } from "@payhooks/core";
import express, { type ErrorRequestHandler } from "express";
import express4 from "express4";
import fastify from "fastify";
import { Hono } from "hono";
import { payhooksConsole as onExpress } from "../../src/express.ts";
import { payhooksConsole as onFastify } from "../../src/fastify.ts";
import { payhooksConsole as onHono } from "../../src/hono.ts";
import { type ConsoleUser, payhooksConsole as onFetch } from "../../src/index.ts";
import { payhooksConsole as onNext } from "../../src/next.ts";

/** The settings of a mount in a test. */
export interface MountOptions {
  /** Gets the headers that the framework's own request has. */
  readonly authorize: (header: (name: string) => string | null | undefined) => ConsoleUser | null;
  readonly redact?: readonly string[];
  readonly allowedHosts?: readonly string[];
}

/** A server that listens. */
export interface Listening {
  /** The console's address. */
  readonly url: string;
  close(): Promise<void>;
}

type Mount = (receiver: Receiver | (() => Receiver), options: MountOptions) => Promise<Listening>;

/** Express writes to the console otherwise. */
const QUIET: ErrorRequestHandler = (_error, _request, response, _next) => void response.status(500).end();

/** Every mount on a real server of its framework, beside the parsers that its users have. */
export const MOUNTS: Readonly<Record<string, Mount>> = {
  Express: (receiver, { authorize, ...others }) => {
    const app = express();
    app.use(
      "/admin/payhooks",
      onExpress(receiver, { authorize: (request) => authorize((name) => request.get(name)), ...others }),
    );
    return listening(createServer(app.use(QUIET)));
  },
  "Express 4": (receiver, { authorize, ...others }) => {
    const app = express4();
    app.use(
      "/admin/payhooks",
      onExpress(receiver, { authorize: (request) => authorize((name) => request.get(name)), ...others }),
    );
    return listening(createServer(app.use(QUIET)));
  },
  "Express, below a parser": (receiver, { authorize, ...others }) => {
    const app = express();
    app.use(express.json());
    app.use(
      "/admin/payhooks",
      onExpress(receiver, {
        authorize: async (request) => authorize((name) => request.get(name)),
        ...others,
      }),
    );
    return listening(createServer(app.use(QUIET)));
  },
  Fastify: async (receiver, { authorize, ...others }) => {
    const app = fastify();
    app.register(
      onFastify(receiver, {
        authorize: ({ headers }) => authorize((name) => headers[name] as string | undefined),
        ...others,
      }),
      { prefix: "/admin/payhooks" },
    );
    const address = await app.listen({ port: 0, host: "127.0.0.1" });
    return {
      url: `${address}/admin/payhooks`,
      async close() {
        app.server.closeAllConnections();
        await app.close();
      },
    };
  },
  Hono: (receiver, { authorize, ...others }) => {
    const app = new Hono();
    app.onError((_error, c) => c.text("", 500));
    app.all(
      "/admin/payhooks",
      onHono(receiver, { authorize: (c) => authorize((name) => c.req.header(name)), ...others }),
    );
    return listening(createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false })));
  },
  "Next.js": (receiver, { authorize, ...others }) =>
    listening(
      bridged(
        onNext(receiver, { authorize: ({ headers }) => authorize((name) => headers.get(name)), ...others }),
      ),
    ),
  fetch: (receiver, { authorize, ...others }) =>
    listening(
      bridged(
        onFetch(receiver, { authorize: ({ headers }) => authorize((name) => headers.get(name)), ...others }),
      ),
    ),
};

/** A handler of web-standard requests on a Node server. */
function bridged(handler: (request: Request) => Promise<Response>): Server {
  return createServer(
    getRequestListener(handler, {
      overrideGlobalObjects: false,
      errorHandler: () => new Response(null, { status: 500 }),
    }),
  );
}

/** Serves the console of a receiver to one user, on the adapter of `fetch`. */
export function servedTo(receiver: Receiver, rights: ConsoleUser["can"]): Promise<Listening> {
  const mount = MOUNTS.fetch;
  if (mount === undefined) throw new Error("there is no mount on fetch");
  return mount(receiver, { authorize: () => ({ by: "marta", can: rights }) });
}

async function listening(server: Server): Promise<Listening> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/admin/payhooks`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
