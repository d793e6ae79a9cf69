import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createReceiver, memoryInbox, type Receiver } from "@payhooks/core";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { paymentCallbacks as onFastify } from "@payhooks/fastify";
import { paymentCallbacks as onHono } from "@payhooks/hono";
import Fastify from "fastify";
import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { readDocument, rowsOf, sectionOf } from "./markdown.ts";

const page = readDocument("docs/guides/testing.md");

describe("testing.md", () => {
  it("shows the files of the example, to the letter", () => {
    const files = ["src/shop.ts", "test/handlers.test.ts", "src/app.ts", "test/app.test.ts"];
    const shown = page.blocks.filter(({ language, mark }) => language === "ts" && mark === "");
    expect(shown.map(({ text }) => text)).toEqual(
      files.map((file) => readFileSync(join(root, "examples/testing", file), "utf8")),
    );
  });
});

/** The page's text about supertest is tried in packages/express/test/merchant-app.test.ts. */
describe("a signed callback", () => {
  const { publicKey, privateKey } = createTestKeys();
  const newReceiver = (): Receiver =>
    createReceiver({ payments: { publicKey }, inbox: memoryInbox() })
      .onDeposit(() => {})
      .ignore("WITHDRAWAL");
  const { headers, rawBody } = signPaymentCallback(callbackFields(), privateKey);
  const write = (client: string): string =>
    rowsOf(sectionOf(page, "Over HTTP")).find(([name]) => name?.includes(client))?.[1] ?? "";

  it("is sent with Fastify's inject as the page says", async () => {
    expect(write("app.inject")).toBe('`{ method: "POST", url, headers, payload: rawBody }`');
    const receiver = newReceiver();
    const app = Fastify().register(onFastify(receiver), { prefix: "/callbacks/pay" });
    const url = "/callbacks/pay";
    const answer = await app.inject({ method: "POST", url, headers, payload: rawBody });
    expect(answer.statusCode).toBe(200);
    await app.close();
    await receiver.close();
  });

  it("is sent with Hono's request, and with fetch, as the page says", async () => {
    expect(write("app.request")).toBe('`{ method: "POST", headers, body: rawBody }`');
    const receiver = newReceiver();
    const app = new Hono().all("/callbacks/pay", onHono(receiver));
    const answer = await app.request("/callbacks/pay", { method: "POST", headers, body: rawBody });
    expect(answer.status).toBe(200);
    const request = new Request("http://merchant.example/", { method: "POST", headers, body: rawBody });
    expect(Buffer.from(await request.arrayBuffer())).toEqual(rawBody);
    await receiver.close();
  });
});
