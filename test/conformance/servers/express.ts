/** Express, 4 or 5 by the first argument. */
import type { AddressInfo } from "node:net";
import { captureRawBody, connectWebhooks, live, paymentCallbacks, ready } from "@payhooks/express";
import express5, { type RequestHandler } from "express";
import express4 from "express4";
import {
  APP_PATH,
  CONNECT_PATH,
  CONTEXT_PATH,
  CONTROL_PATH,
  control,
  double,
  inContextOf,
  PAYMENT_PATHS,
  PROBE_PATHS,
  PROBED,
  REQUEST_HEADER,
  receiverOf,
  TRAP_PATH,
} from "../application.ts";
import { announce, secrets } from "./environment.ts";
import { viaFetch } from "./node-bridge.ts";

const express = process.argv[2] === "4" ? express4 : express5;
const app = express();
const env = secrets();
const plain = receiverOf("plain", env);

for (const kind of ["plain", "handled", "bounded", "closing", "away"] as const) {
  app.use(PAYMENT_PATHS[kind], paymentCallbacks(receiverOf(kind, env)));
}
app.all(
  PAYMENT_PATHS.tenants,
  paymentCallbacks(receiverOf("tenants", env), { tenant: (request) => String(request.params.shop) }),
);
for (const kind of PROBED) {
  app.get(PROBE_PATHS[kind].live, live(receiverOf(kind, env)));
  app.get(PROBE_PATHS[kind].ready, ready(receiverOf(kind, env), { maxDueAgeMs: 3_600_000 }));
}
app.use(CONNECT_PATH, connectWebhooks(plain));
app.use(
  CONTEXT_PATH,
  (request, _response, next) => inContextOf(request.get(REQUEST_HEADER), next),
  paymentCallbacks(plain),
);

const traps: Readonly<Record<string, RequestHandler>> = {
  "json-parsed": express.json(),
  "form-parsed": express.urlencoded({ type: "*/*", extended: true }),
  "stream-read": (request, _response, next) => void request.resume().once("end", () => next()),
  "stream-decoded": (request, _response, next) => next(void request.setEncoding("utf8")),
  "exact-json-parsed": express.json({ verify: captureRawBody }),
  "exact-bytes-parsed": express.raw({ type: "*/*" }),
  "exact-text-read": express.text({ type: "*/*" }),
  "exact-text-kept": express.json({
    verify: (request, _response, body) => void Object.assign(request, { rawBody: body.toString() }),
  }),
};
for (const [name, above] of Object.entries(traps)) {
  app.use(TRAP_PATH + name, above, connectWebhooks(plain));
}
app.use(CONTROL_PATH, (request, response) => {
  request.url = request.originalUrl;
  viaFetch(control)(request, response);
});
app.post(APP_PATH, express.json(), (request, response) => void response.json(double(request.body)));

const server = app.listen(0, "127.0.0.1", () => announce((server.address() as AddressInfo).port));
