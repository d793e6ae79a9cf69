/** Lambda functions behind a gateway of the kind that the first argument names: `v1`, `v2` or `alb`. */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import {
  connectWebhooks,
  type HttpEvent,
  type HttpFunction,
  live,
  paymentCallbacks,
  ready,
} from "@payhooks/lambda";
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
} from "../application.ts";
import { announce, secrets } from "./environment.ts";
import { viaFetch } from "./node-bridge.ts";

const env = secrets();
const receiver = (kind: Parameters<typeof receiverOf>[0]) => receiverOf(kind, env, "elsewhere");
const plain = paymentCallbacks(receiver("plain"));
const tenants = paymentCallbacks(receiver("tenants"), {
  tenant: ({ rawPath, path }) => decodeURIComponent((rawPath ?? path ?? "").split("/")[2] ?? ""),
});
const functions: Record<string, HttpFunction> = {
  [CONNECT_PATH]: connectWebhooks(receiver("plain")),
  [PAYMENT_PATHS.plain]: plain,
  [CONTEXT_PATH]: (event) =>
    inContextOf(event.headers?.[REQUEST_HEADER] ?? event.multiValueHeaders?.[REQUEST_HEADER]?.[0], () =>
      plain(event),
    ),
};
for (const kind of ["handled", "bounded", "closing", "away"] as const) {
  functions[PAYMENT_PATHS[kind]] = paymentCallbacks(receiver(kind));
}
for (const kind of PROBED) {
  functions[PROBE_PATHS[kind].live] = live(receiver(kind));
  functions[PROBE_PATHS[kind].ready] = ready(receiver(kind), { maxDueAgeMs: 3_600_000 });
}

/** The headers of a request, with all values of each. */
function listsOf({ rawHeaders }: IncomingMessage): Record<string, string[]> {
  const lists: Record<string, string[]> = {};
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n]?.toLowerCase() ?? "";
    lists[name] = [...(lists[name] ?? []), rawHeaders[n + 1] ?? ""];
  }
  return lists;
}

/** An event as the gateway makes it. Format 2.0 and load balancers send JSON as text. */
function eventOf(request: IncomingMessage, bytes: Buffer): HttpEvent {
  const { method = "", url = "" } = request;
  const { pathname, search } = new URL(url, "http://gateway.example");
  const lists = listsOf(request);
  const joined = Object.fromEntries(Object.entries(lists).map(([name, values]) => [name, values.join(",")]));
  const isText = process.argv[2] !== "v1" && bytes.equals(Buffer.from(bytes.toString("utf8")));
  const body = { body: bytes.toString(isText ? "utf8" : "base64"), isBase64Encoded: !isText };
  if (process.argv[2] === "v2") {
    const http = { method, path: pathname, sourceIp: "127.0.0.1" };
    return {
      ...body,
      rawPath: pathname,
      rawQueryString: search.slice(1),
      headers: joined,
      requestContext: { http },
    };
  }
  const context = process.argv[2] === "alb" ? { elb: {} } : { identity: { sourceIp: "127.0.0.1" } };
  return { ...body, httpMethod: method, path: pathname, multiValueHeaders: lists, requestContext: context };
}

const answerControl = viaFetch(control);
const server = createServer(async (request, response) => {
  const path = request.url?.split("?")[0] ?? "";
  if (path.startsWith(CONTROL_PATH)) return answerControl(request, response);
  const parts: Buffer[] = [];
  try {
    for await (const part of request) parts.push(part);
  } catch {
    // The sender is gone, so there is no request to hand over.
    return;
  }
  if (path === APP_PATH) {
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify(double(JSON.parse(Buffer.concat(parts).toString("utf8")))));
  }
  const call = functions[path] ?? (path.startsWith("/shops/") ? tenants : undefined);
  if (call === undefined) return response.writeHead(404).end();
  const { statusCode, headers, multiValueHeaders, body } = await call(eventOf(request, Buffer.concat(parts)));
  response.writeHead(statusCode, headers ?? multiValueHeaders).end(body);
});
server.listen(0, "127.0.0.1", () => announce((server.address() as AddressInfo).port));
