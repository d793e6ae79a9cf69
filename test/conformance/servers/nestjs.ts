/** NestJS, on Express or Fastify by the first argument. */
import "reflect-metadata";
import type { AddressInfo } from "node:net";
import { Body, Controller, HttpCode, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { type Mounts, PayhooksModule } from "@payhooks/nestjs";
import express, { type RequestHandler } from "express";
import fastify from "fastify";
import {
  APP_PATH,
  CONNECT_PATH,
  CONTEXT_PATH,
  CONTROL_PATH,
  control,
  double,
  inContextOf,
  type Kind,
  PAYMENT_PATHS,
  PROBE_PATHS,
  PROBED,
  REQUEST_HEADER,
  receiverOf,
  TRAP_PATH,
} from "../application.ts";
import { announce, secrets } from "./environment.ts";
import { viaFetch } from "./node-bridge.ts";

const env = secrets();
const answerControl = viaFetch(control);

/** Traps stand above everything, as the middleware of a platform that the application is given does. */
function onExpress(): ExpressAdapter {
  const app = express();
  const traps: Readonly<Record<string, RequestHandler>> = {
    "json-parsed": express.json(),
    "stream-read": (request, _response, next) => void request.resume().once("end", () => next()),
    "stream-decoded": (request, _response, next) => next(void request.setEncoding("utf8")),
    "exact-bytes-parsed": express.raw({ type: "*/*" }),
    "exact-text-read": express.text({ type: "*/*" }),
  };
  // NestJS leaves out its own parser if it finds one by its name, wherever that is mounted.
  for (const [name, above] of Object.entries(traps)) {
    app.use(TRAP_PATH + name, (request, response, next) => above(request, response, next));
  }
  app.use(CONTEXT_PATH, (request, _response, next) => inContextOf(request.get(REQUEST_HEADER), next));
  app.use(CONTROL_PATH, (request, response) => {
    request.url = request.originalUrl;
    answerControl(request, response);
  });
  return new ExpressAdapter(app);
}

function onFastify(): FastifyAdapter {
  const app = fastify();
  app.addHook("onRequest", (request, _reply, done) => {
    const { url, headers, raw } = request;
    if (url.startsWith(CONTEXT_PATH)) inContextOf(String(headers[REQUEST_HEADER]), done);
    else if (url === `${TRAP_PATH}stream-read`) raw.resume().once("end", () => done());
    else if (url === `${TRAP_PATH}stream-decoded`) done(void raw.setEncoding("utf8"));
    else done();
  });
  app.all(`${CONTROL_PATH}*`, (request, reply) => {
    reply.hijack();
    answerControl(request.raw, reply.raw);
  });
  return new FastifyAdapter(app as never);
}

const platform = process.argv[2] === "fastify" ? onFastify() : onExpress();
const mounted = (name: string, kind: Kind, options: Mounts) =>
  PayhooksModule.forRoot({ name, receiver: receiverOf(kind, env), ...options });
const probesOf = (kind: Kind) =>
  PROBED.flatMap((probed) =>
    probed === kind ? [{ ...PROBE_PATHS[probed], maxDueAgeMs: 3_600_000 }] : [],
  )[0];
const traps = ["json-parsed", "stream-read", "stream-decoded", "exact-bytes-parsed", "exact-text-read"];

/** Decorated without decorators, which this program is not compiled for. */
class Own {
  double(body: unknown): unknown {
    return double(body);
  }
}
const descriptor = Object.getOwnPropertyDescriptor(Own.prototype, "double") ?? {};
Post()(Own.prototype, "double", descriptor);
HttpCode(200)(Own.prototype, "double", descriptor);
Body()(Own.prototype, "double", 0);
Controller(APP_PATH)(Own);

class App {}
Module({
  controllers: [Own],
  imports: [
    ...(["plain", "handled", "bounded", "closing", "away"] as const).map((kind) =>
      mounted(kind, kind, {
        paths: {
          payments: PAYMENT_PATHS[kind],
          ...(kind === "plain" ? { connect: CONNECT_PATH } : {}),
        },
        probes: probesOf(kind),
      }),
    ),
    mounted("tenants", "tenants", {
      paths: { payments: PAYMENT_PATHS.tenants },
      tenant: ({ originalUrl }) => decodeURIComponent(originalUrl?.split("/")[2] ?? ""),
    }),
    mounted("in a context", "plain", { paths: { payments: CONTEXT_PATH } }),
    ...traps.map((name) => mounted(name, "plain", { paths: { connect: TRAP_PATH + name } })),
  ],
})(App);

const app = await NestFactory.create(App, platform, { logger: false });
await app.listen(0, "127.0.0.1");
announce((app.getHttpServer().address() as AddressInfo).port);
