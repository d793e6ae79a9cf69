import { join } from "node:path";
import {
  callbackFields,
  connectEvent,
  forgedCallback,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildNext, NEXT, QUIET } from "../conformance/next.ts";
import { KEYS, SECRET, type Server, startServer } from "../conformance/targets.ts";
import { exchange, request } from "../e2e/wire.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, until } from "../faults/harness/scope.ts";
import { root } from "../package/workspace.ts";

const folder = "examples/next";
const cwd = join(root, folder);
const CRON_SECRET = "cron_0123456789abcdef";

describe("the example for Next.js, built without secrets or Redis, and started", () => {
  const scope = new Scope();
  let redis: RedisServer;
  let server: Server;

  beforeAll(async () => {
    await buildNext(cwd, [folder, "packages/core/dist", "packages/next/dist", "packages/console/dist"]);
    redis = await RedisServer.start(scope);
    server = await start({ CRON_SECRET });
  }, 300_000);
  afterAll(() => scope.close());

  const start = async (env: Readonly<Record<string, string>>): Promise<Server> =>
    scope.add(
      await startServer({
        command: process.execPath,
        args: [NEXT, "start", "--port", "0", "--hostname", "127.0.0.1"],
        cwd,
        env: { ...QUIET, REDIS_URL: redis.url, ...env },
        listening: /http:\/\/127\.0\.0\.1:(\d+)[\s\S]*Ready/,
      }),
      (one) => one.stop(),
    );

  const post = async (path: string, { headers, rawBody }: SignedDelivery): Promise<string> => {
    const url = `http://127.0.0.1:${server.port}${path}`;
    const answer = await fetch(url, { method: "POST", headers, body: Buffer.from(rawBody) });
    return `${answer.status} ${await answer.text()}`;
  };
  const work = async (authorization?: string, { port } = server): Promise<string> => {
    const headers = authorization === undefined ? {} : { authorization };
    const answer = await fetch(`http://127.0.0.1:${port}/api/work`, { headers });
    return `${answer.status} ${await answer.text()}`;
  };
  const linesWith = (text: string): readonly string[] =>
    server
      .output()
      .split("\n")
      .filter((line) => line.includes(text));
  const connections = async (): Promise<number> => Number(await redis.info("connected_clients"));

  it("answers a cold start, and runs a deposit once after the response", async () => {
    const delivery = signPaymentCallback(callbackFields({ referenceId: "order-1" }), KEYS.privateKey);
    for (let copy = 0; copy < 3; copy++) {
      expect(await post("/callbacks/pay", delivery)).toBe('200 {"received":true}');
    }
    await until("the deposit's handler", () => linesWith("for order-1 once").length > 0);
    await post("/webhooks/connect", signConnectWebhook(connectEvent("settlement.approved"), SECRET));
    await until("the settlement's handler", () => linesWith("book wd_").length > 0);
    expect(linesWith("for order-1 once")).toHaveLength(1);
  });

  it("refuses a forgery", async () => {
    const forged = forgedCallback(callbackFields(), { amount: "9.000000" }, KEYS.privateKey);
    expect(await post("/callbacks/pay", forged)).toBe('401 {"error":{"code":"ERR_SIGNATURE_INVALID"}}');
  });

  it("has a console for whoever has signed in", async () => {
    const url = `http://127.0.0.1:${server.port}/admin/payhooks`;
    expect((await fetch(url)).status).toBe(403);
    const headers = { "x-authenticated-user": "marta" };
    const page = await fetch(url, { headers });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("Payhooks console")]);
    expect((await fetch(`${url}?asset=console.js`, { headers })).headers.get("content-type")).toContain(
      "javascript",
    );
    const stream = await fetch(`${url}?stream=1`, { headers });
    const reader = stream.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe(": open\n\n");
    await reader?.cancel();
    const decision = {
      action: "discard",
      eventId: "0".repeat(48),
      revision: "0".repeat(16),
      note: "not there",
    };
    const answer = await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        "content-type": "application/json",
        "x-payhooks-console": "1",
        "sec-fetch-site": "same-origin",
      },
      body: JSON.stringify(decision),
    });
    expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining("no longer held")]);
  });

  it("has it under the names that it allows only, those of this machine included", async () => {
    const under = async (host: string): Promise<number> => {
      const headers = [
        ["Host", host],
        ["X-Authenticated-User", "marta"],
      ] as const;
      return (await exchange(server.port, request("GET", "/admin/payhooks", headers))).status;
    };
    expect(await under("admin.shop.example")).toBe(200);
    expect(await under(`localhost:${server.port}`)).toBe(200);
    expect(await under("another.example")).toBe(421);
  });

  it("lets a cron job work, with the secret only, and shares its connections among all routes", async () => {
    const before = await connections();
    const unauthorized = '401 {"error":{"code":"ERR_UNAUTHORIZED"}}';
    expect(await work()).toBe(unauthorized);
    expect(await work(`Bearer ${CRON_SECRET}x`)).toBe(unauthorized);
    expect(await work(CRON_SECRET)).toBe(unauthorized);
    expect(await work(`Bearer ${CRON_SECRET}`)).toMatch(/^200 \{"ran":0,"failed":0,"remaining":0/);
    for (let n = 0; n < 5; n++) {
      await post("/callbacks/pay", signPaymentCallback(callbackFields(), KEYS.privateKey));
      await post("/webhooks/connect", signConnectWebhook(connectEvent("settlement.approved"), SECRET));
    }
    expect(await connections()).toBe(before);
    // The test's own, and the path of deliveries.
    expect(before).toBe(2);
  });

  it.each([{}, { CRON_SECRET: "" }, { CRON_SECRET: " " }])(
    "lets nobody work without a secret: %o",
    async (env) => {
      const open = await start(env);
      const misconfigured = '500 {"error":{"code":"ERR_MISCONFIGURED"}}';
      for (const authorization of [undefined, "", "Bearer", "Bearer ", "Bearer undefined"]) {
        expect(await work(authorization, open)).toBe(misconfigured);
      }
      expect(open.output()).toContain("workRoute was given no secret");
      await open.stop();
    },
  );
});
