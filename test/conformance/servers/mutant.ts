/** The mistake that the suite exists to catch: an adapter that serialises the parsed body again. */
import type { AddressInfo } from "node:net";
import express from "express";
import {
  APP_PATH,
  CONNECT_PATH,
  CONTROL_PATH,
  control,
  double,
  type Kind,
  PAYMENT_PATHS,
  receiverOf,
} from "../application.ts";
import { announce, secrets } from "./environment.ts";
import { viaFetch } from "./node-bridge.ts";

const app = express();
const env = secrets();
app.use(CONTROL_PATH, (request, response) => {
  request.url = request.originalUrl;
  viaFetch(control)(request, response);
});
app.use(express.json({ strict: false, type: () => true, limit: "10mb" }));

function reserialising(kind: Kind, flow: "payments" | "connect"): express.RequestHandler {
  const receiver = receiverOf(kind, env);
  receiver.start().catch(() => {});
  return async (request, response) => {
    const { status, headers, body } = await receiver[flow].receive({
      method: request.method,
      url: request.originalUrl,
      headers: { get: (name) => request.get(name) },
      rawBody: Buffer.from(JSON.stringify(request.body ?? {})),
      tenant: request.params.shop === undefined ? undefined : String(request.params.shop),
    });
    response.writeHead(status, headers).end(body);
  };
}
for (const [kind, path] of Object.entries(PAYMENT_PATHS))
  app.all(path, reserialising(kind as Kind, "payments"));
app.all(CONNECT_PATH, reserialising("plain", "connect"));
app.post(APP_PATH, (request, response) => void response.json(double(request.body)));

const server = app.listen(0, "127.0.0.1", () => announce((server.address() as AddressInfo).port));
