import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { payhooks } from "./support/run.ts";

interface Got {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function server(status: number): Promise<{ readonly url: string; readonly got: Got[] }> {
  const got: Got[] = [];
  const http = createServer(async (request, response) => {
    got.push({ headers: request.headers, body: await text(request) });
    response.writeHead(status).end();
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  onTestFinished(() => void http.close());
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/a-secret`, got };
}

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

describe("payhooks alerts test", () => {
  it("sends one message to each channel, and says which arrived", async () => {
    const [chat, pager, hook] = [await server(200), await server(202), await server(500)];
    const args = [
      "--slack",
      chat.url,
      "--pagerduty",
      "key-1",
      "--pagerduty-url",
      pager.url,
      "--from",
      "shop",
    ];
    const env = { PAYHOOKS_WEBHOOK_URL: hook.url, PAYHOOKS_WEBHOOK_SECRET: SECRET };
    const ended = await payhooks(["alerts", "test", ...args], { env });
    expect(ended).toMatchObject({
      code: 1,
      stdout: "slack: sent\npagerduty: sent\nwebhook: not sent: HTTP 500\n",
      stderr: "",
    });
    expect(JSON.parse(chat.got[0]?.body ?? "")).toEqual({
      text: expect.stringMatching(/^🔵 \*shop\*, a test: This is a test\. Nothing is wrong\.\n/),
    });
    expect(JSON.parse(pager.got[0]?.body ?? "")).toMatchObject({
      routing_key: "key-1",
      event_action: "trigger",
      dedup_key: "payhooks/shop/test",
      payload: { summary: "shop: This is a test. Nothing is wrong.", severity: "info", source: "shop" },
    });
    const { headers, body = "" } = hook.got[0] ?? {};
    const signed = `${headers?.["webhook-id"]}.${headers?.["webhook-timestamp"]}.${body}`;
    const signature = createHmac("sha256", Buffer.alloc(32, 7)).update(signed).digest("base64");
    expect(headers?.["webhook-signature"]).toBe(`v1,${signature}`);
    expect(JSON.parse(body)).toMatchObject({ type: "payhooks.alert", data: { what: "test", from: "shop" } });
  });

  it("says what is missing, without a secret", async () => {
    expect(await payhooks(["alerts", "test"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no channel"),
    });
    expect(await payhooks(["alerts", "--slack", "http://127.0.0.1:1"])).toMatchObject({ code: 2 });
    const wrong = await payhooks([
      "alerts",
      "test",
      "--webhook",
      "http://127.0.0.1:1",
      "--secret",
      "hunter2",
    ]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("webhookChannel.secret") });
    expect(wrong.stderr).not.toContain("hunter2");
    const nobody = await payhooks(["alerts", "test", "--json", "--slack", "http://127.0.0.1:1/a-secret"]);
    expect(nobody.code).toBe(1);
    expect(nobody.json()).toEqual([
      { channel: "slack", sent: false, problem: expect.stringContaining("fetch failed") },
    ]);
    expect(nobody.stdout).not.toContain("a-secret");
  });
});
