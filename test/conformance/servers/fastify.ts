import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { connectWebhooks, live, paymentCallbacks, ready } from "@payhooks/fastify";
import Fastify, { type FastifyInstance } from "fastify";
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

const app = Fastify();
const env = secrets();
const plain = receiverOf("plain", env);

for (const kind of ["plain", "handled", "bounded", "closing", "away"] as const) {
  app.register(paymentCallbacks(receiverOf(kind, env)), { prefix: PAYMENT_PATHS[kind] });
}
const tenant = paymentCallbacks(receiverOf("tenants", env), {
  tenant: ({ params }) => (params as { shop: string }).shop,
});
app.register(tenant, { prefix: PAYMENT_PATHS.tenants });
app.register(connectWebhooks(plain), { prefix: CONNECT_PATH });
app.register(async (scope) => {
  scope.addHook("onRequest", ({ headers }, _reply, done) =>
    inContextOf(String(headers[REQUEST_HEADER]), done),
  );
  scope.register(paymentCallbacks(plain), { prefix: CONTEXT_PATH });
});
for (const kind of PROBED) {
  app.get(PROBE_PATHS[kind].live, live(receiverOf(kind, env)));
  app.get(PROBE_PATHS[kind].ready, ready(receiverOf(kind, env), { maxDueAgeMs: 3_600_000 }));
}

async function bytesOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

const traps: Readonly<Record<string, (scope: FastifyInstance) => unknown>> = {
  "stream-read": (scope) =>
    scope.addHook(
      "onRequest",
      (request, _reply, done) => void request.raw.resume().once("end", () => done()),
    ),
  "stream-replaced": (scope) =>
    scope.addHook("preParsing", async (_request, _reply, payload) => Readable.from(await bytesOf(payload))),
  "stream-decoded": (scope) =>
    scope.addHook("onRequest", (request, _reply, done) => done(void request.raw.setEncoding("utf8"))),
  "exact-bytes-left-to-the-plugin": (scope) =>
    scope.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) =>
      done(null, JSON.parse(body as string)),
    ),
  "exact-bytes-kept": (scope) =>
    scope.addHook("preParsing", async (request, _reply, payload) => {
      Object.assign(request, { rawBody: await bytesOf(payload) });
      return payload;
    }),
  "exact-text-kept": (scope) =>
    scope.addHook("preParsing", async (request, _reply, payload) => {
      Object.assign(request, { rawBody: (await bytesOf(payload)).toString("utf8") });
      return payload;
    }),
};
for (const [name, above] of Object.entries(traps)) {
  app.register(async (scope) => {
    above(scope);
    scope.register(connectWebhooks(plain), { prefix: TRAP_PATH + name });
  });
}
const answerControl = viaFetch(control);
app.all(`${CONTROL_PATH}*`, (request, reply) => {
  reply.hijack();
  answerControl(request.raw, reply.raw);
});
app.post(APP_PATH, async (request) => double(request.body));

await app.listen({ port: 0, host: "127.0.0.1" });
announce((app.server.address() as AddressInfo).port);
