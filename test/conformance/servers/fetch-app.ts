/** A web-standard application without a framework, for every runtime: routes by hand, receivers by a factory. */
import { connectWebhooks, type FetchContext, live, paymentCallbacks, ready } from "@payhooks/core/fetch";
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
  type Secrets,
  TRAP_PATH,
} from "../application.ts";

type App = (request: Request, env: Secrets, context?: FetchContext) => Promise<Response>;

const makePlain = (env: Secrets) => receiverOf("plain", env);
const routes: Record<string, App> = { [CONNECT_PATH]: connectWebhooks(makePlain) };
for (const kind of ["handled", "bounded", "closing", "away"] as const) {
  routes[PAYMENT_PATHS[kind]] = paymentCallbacks((env: Secrets) => receiverOf(kind, env));
}
const plain = paymentCallbacks(makePlain);
routes[PAYMENT_PATHS.plain] = plain;
routes[CONTEXT_PATH] = (request, env, context) =>
  inContextOf(request.headers.get(REQUEST_HEADER), () => plain(request, env, context));
for (const kind of PROBED) {
  routes[PROBE_PATHS[kind].live] = live((env: Secrets) => receiverOf(kind, env));
  routes[PROBE_PATHS[kind].ready] = ready((env: Secrets) => receiverOf(kind, env), {
    maxDueAgeMs: 3_600_000,
  });
}
const shopIn = (request: Request): string =>
  decodeURIComponent(new URL(request.url).pathname.split("/")[2] ?? "");
const tenants = paymentCallbacks((env: Secrets) => receiverOf("tenants", env), { tenant: shopIn });

const traps: Readonly<Record<string, (request: Request) => unknown>> = {
  "json-parsed": (request) => request.json().catch(() => {}),
  "text-read": (request) => request.text(),
  "bytes-read": (request) => request.arrayBuffer(),
  "stream-taken": (request) => request.body?.getReader(),
  "stream-cancelled": (request) => request.body?.cancel(),
  "exact-bytes-of-a-clone-left": (request) => request.clone().text(),
};

export const fetchApp: App = async (request, env, context) => {
  const { pathname } = new URL(request.url);
  const route = routes[pathname];
  if (route !== undefined) return route(request, env, context);
  if (pathname.startsWith("/shops/")) return tenants(request, env, context);
  if (pathname.startsWith(CONTROL_PATH)) return control(request);
  if (pathname === APP_PATH) return Response.json(double(await request.json()));
  const trap = traps[pathname.slice(TRAP_PATH.length)];
  if (trap === undefined) return new Response("nothing here", { status: 404 });
  await trap(request);
  return connectWebhooks(makePlain)(request, env, context);
};
