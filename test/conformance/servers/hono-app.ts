/** The Hono application, for every runtime. */
import { connectWebhooks, live, paymentCallbacks, ready } from "@payhooks/hono";
import { Hono, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
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

export function honoApp(env: Secrets): Hono {
  const app = new Hono();
  const plain = receiverOf("plain", env);
  for (const kind of ["plain", "handled", "bounded", "closing", "away"] as const) {
    app.all(PAYMENT_PATHS[kind], paymentCallbacks(receiverOf(kind, env)));
  }
  const tenant = paymentCallbacks(receiverOf("tenants", env), { tenant: (c) => c.req.param("shop") });
  app.all(PAYMENT_PATHS.tenants, tenant);
  app.all(CONNECT_PATH, connectWebhooks(plain));
  app.all(
    CONTEXT_PATH,
    (c, next) => inContextOf(c.req.header(REQUEST_HEADER), next),
    paymentCallbacks(plain),
  );
  for (const kind of PROBED) {
    app.get(PROBE_PATHS[kind].live, live(receiverOf(kind, env)));
    app.get(PROBE_PATHS[kind].ready, ready(receiverOf(kind, env), { maxDueAgeMs: 3_600_000 }));
  }

  const after =
    (read: (c: Parameters<MiddlewareHandler>[0]) => Promise<unknown>): MiddlewareHandler =>
    async (c, next) => {
      await read(c).catch(() => {});
      await next();
    };
  const traps: Readonly<Record<string, MiddlewareHandler>> = {
    "exact-json-parsed": after((c) => c.req.json()),
    "exact-text-read": after((c) => c.req.text()),
    "exact-no-form-to-parse": after((c) => c.req.parseBody()),
    "exact-bytes-read": after((c) => c.req.arrayBuffer()),
    "blob-read": after((c) => c.req.blob()),
    "raw-request-read": after((c) => c.req.raw.text()),
    "stream-taken": after(async (c) => c.req.raw.body?.getReader()),
    "exact-bytes-of-a-clone-left": after((c) => c.req.raw.clone().text()),
    "exact-bytes-below-a-limit": bodyLimit({ maxSize: 100_000 }),
  };
  for (const [name, above] of Object.entries(traps)) app.all(TRAP_PATH + name, above, connectWebhooks(plain));
  app.all(`${CONTROL_PATH}*`, (c) => control(c.req.raw));
  app.post(APP_PATH, async (c) => c.json(double(await c.req.json())));
  return app;
}
