/** Sources over real sockets, on each adapter: what a stranger, a clock and a sender may do, and the documented answer to each. */
import "reflect-metadata";
import { createHmac } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { type AbstractHttpAdapter, NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { createReceiver, memoryInbox, type ReceiverOptions } from "@payhooks/core";
import { webhooks as onFetch } from "@payhooks/core/fetch";
import { github, hmac, type SourceEvent, source } from "@payhooks/core/sources";
import { webhooks as onExpress } from "@payhooks/express";
import { webhooks as onFastify } from "@payhooks/fastify";
import { webhooks as onHono } from "@payhooks/hono";
import { webhooks as onLambda } from "@payhooks/lambda";
import { PayhooksModule } from "@payhooks/nestjs";
import { webhooks as onNext } from "@payhooks/next";
import express from "express";
import express4 from "express4";
import fastify from "fastify";
import { Hono } from "hono";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { viaFetch } from "../conformance/servers/node-bridge.ts";
import { silent } from "../support/silent.ts";

const SECRET = "a secret of the bank 0123456789";

/** A function is frozen once it has answered, so its handlers run before that. */
const ON_LAMBDA = { ack: "handled" } as const;

function makeReceiver(where: Pick<ReceiverOptions, "ack" | "run"> = { run: "background" }) {
  const ran: SourceEvent[] = [];
  const receiver = createReceiver({
    ...where,
    logger: silent,
    inbox: memoryInbox(),
    sources: {
      bank: source({
        verify: hmac({
          header: "x-bank-signature",
          format: { kind: "pairs", separator: ",", signature: "v1", timestamp: "t" },
          over: "{timestamp}.{body}",
          secret: SECRET,
        }),
        events: { paid: z.object({ amount: z.number() }) },
        read: ({ body }) => ({ id: body.id, name: body.type, data: body.data }),
        challenge: ({ query }) => query.get("challenge"),
      }),
      forge: github({ secret: SECRET }),
    },
  });
  receiver.on("bank", "paid", (event) => void ran.push(event));
  receiver.on("forge", "push", (event) => void ran.push(event));
  return { receiver, ran };
}

type Made = ReturnType<typeof makeReceiver>["receiver"];

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a server with the source at /bank. */
const adapters: Readonly<Record<string, (receiver: Made) => Promise<string>>> = {
  "Express 5": (receiver) => listening(express().use("/bank", onExpress(receiver, "bank"))),
  "Express 4": (receiver) => listening(express4().use("/bank", onExpress(receiver, "bank"))),
  async Fastify(receiver) {
    const app = fastify();
    app.register(onFastify(receiver, "bank"), { prefix: "/bank" });
    onTestFinished(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1" });
  },
  async Hono(receiver) {
    const app = new Hono().all("/bank", onHono(receiver, "bank"));
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
    await new Promise<void>((resolve) => server.once("listening", resolve));
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
  "Next.js": (receiver) => listening(viaFetch(onNext(receiver, "bank"))),
  "NestJS on Express": (receiver) => onNest(receiver, new ExpressAdapter()),
  "NestJS on Fastify": (receiver) => onNest(receiver, new FastifyAdapter()),
  fetch: (receiver) => listening(viaFetch(onFetch(receiver, "bank"))),
  Lambda: (receiver) => onLambdaServer(receiver),
};

/** A function behind a gateway that sends it events of format 2.0. */
function onLambdaServer(receiver: Made): Promise<string> {
  const call = onLambda(receiver, "bank");
  return listening(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method = "", url = "", headers } = request;
    const [rawPath = "", rawQueryString = ""] = url.split("?");
    const {
      statusCode,
      headers: answered,
      body,
    } = await call({
      rawPath,
      rawQueryString,
      headers: headers as Record<string, string>,
      requestContext: { http: { method, sourceIp: "127.0.0.1" } },
      body: Buffer.concat(parts).toString("base64"),
      isBase64Encoded: true,
    });
    response.writeHead(statusCode, answered).end(body);
  });
}

async function onNest(receiver: Made, platform: AbstractHttpAdapter): Promise<string> {
  const module = PayhooksModule.forRoot({ receiver, paths: { bank: "/bank" } });
  const app = await NestFactory.create({ module: class {}, imports: [module] }, platform, { logger: false });
  onTestFinished(() => app.close());
  await app.listen(0, "127.0.0.1");
  return `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
}

function signed(body: string, at: number = Date.now(), secret = SECRET): Readonly<Record<string, string>> {
  const seconds = Math.floor(at / 1000);
  const signature = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return { "content-type": "application/json", "x-bank-signature": `t=${seconds},v1=${signature}` };
}

describe.each(Object.entries(adapters))("%s", (name, start) => {
  async function set() {
    const { receiver, ran } = makeReceiver(name === "Lambda" ? ON_LAMBDA : undefined);
    const url = await start(receiver);
    await receiver.start();
    onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
    async function post(body: string, headers = signed(body)): Promise<readonly [number, string]> {
      const answer = await fetch(`${url}/bank`, { method: "POST", body, headers });
      const text = await answer.text();
      return [answer.status, /ERR_[A-Z_]+/.exec(text)?.[0] ?? text];
    }
    return { receiver, ran, url, post };
  }
  const body = JSON.stringify({ id: "p-1", type: "paid", data: { amount: 5 } });
  const RECEIVED = [200, '{"received":true}'];

  it("runs a signed event once, however often it comes", async () => {
    const { ran, post, receiver } = await set();
    expect(await post(body)).toEqual(RECEIVED);
    await expect.poll(() => ran.length).toBe(1);
    expect(await post(body)).toEqual(RECEIVED);
    expect(await post(body, signed(body, Date.now() - 1_000))).toEqual(RECEIVED);
    expect(ran).toEqual([expect.objectContaining({ flow: "bank", id: "p-1", data: { amount: 5 } })]);
    expect((await receiver.events.list({ flow: "bank", id: "p-1" })).events).toHaveLength(1);
  });

  it.each([
    ["tampered bytes", body.replace("5", "6"), signed(body), [401, "ERR_SIGNATURE_INVALID"]],
    ["a wrong secret", body, signed(body, Date.now(), "another"), [401, "ERR_SIGNATURE_INVALID"]],
    ["no signature", body, { "content-type": "application/json" }, [401, "ERR_SIGNATURE_MISSING"]],
    ["an old time", body, signed(body, Date.now() - 600_000), [400, "ERR_TIMESTAMP_EXPIRED"]],
    [
      "2 MB",
      `"${"x".repeat(2_000_000)}"`,
      { "content-type": "application/json" },
      [413, "ERR_BODY_TOO_LARGE"],
    ],
    ["an encoded body", body, { ...signed(body), "content-encoding": "gzip" }, [415, "ERR_CONTENT_ENCODING"]],
  ])("refuses %s", async (_what, sent, headers, answer) => {
    const { ran, post, receiver } = await set();
    expect(await post(sent, headers)).toEqual(answer);
    expect([ran, (await receiver.events.list()).events]).toEqual([[], []]);
  });

  it("acknowledges a name that nobody handles, and stores nothing", async () => {
    const { post, receiver } = await set();
    const other = body.replace("paid", "opened");
    expect(await post(other)).toEqual(RECEIVED);
    expect((await receiver.events.list()).events).toEqual([]);
  });

  it("holds what does not fit its schema, and what is no JSON", async () => {
    const { ran, post, receiver } = await set();
    // A receiver that answers only once handlers have run says that none has.
    const held = name === "Lambda" ? [503, "ERR_HELD"] : RECEIVED;
    expect(await post(body.replace("5", '"five"'))).toEqual(held);
    expect(await post("amount=5")).toEqual(held);
    const reasons = async () =>
      (await receiver.events.list({ state: "held" })).events.map(({ reason }) => reason);
    await expect.poll(async () => (await reasons()).toSorted()).toEqual(["malformed", "schema"]);
    expect(ran).toEqual([]);
  });

  it("takes an id that ran for a copy, whatever else its body says", async () => {
    const { ran, post, receiver } = await set();
    expect(await post(body)).toEqual(RECEIVED);
    await expect.poll(() => ran.length).toBe(1);
    expect(await post(body.replace("5", "6"))).toEqual(RECEIVED);
    const { events } = await receiver.events.list({ flow: "bank", id: "p-1" });
    expect(events).toEqual([expect.objectContaining({ event: "paid", reason: null })]);
    expect(ran).toHaveLength(1);
  });

  it("takes any content type, since the signature covers the bytes", async () => {
    const { ran, post } = await set();
    const { "content-type": _, ...headers } = signed(body);
    expect(await post(body, { ...headers, "content-type": "application/x-www-form-urlencoded" })).toEqual(
      RECEIVED,
    );
    await expect.poll(() => ran.length).toBe(1);
  });

  it("answers a challenge as plain text", async () => {
    const { url } = await set();
    const answer = await fetch(`${url}/bank?challenge=%3Cb%3E`);
    expect([answer.status, await answer.text(), answer.headers.get("content-type")]).toEqual([
      200,
      "<b>",
      "text/plain; charset=utf-8",
    ]);
  });
});

it("a mount of a source that is not there is refused with the names of those that are", () => {
  const { receiver } = makeReceiver();
  expect(() => onExpress(receiver, "bnak" as "bank")).toThrow(
    expect.objectContaining({ code: "ERR_SOURCE_UNKNOWN", message: expect.stringContaining("bank, forge") }),
  );
});
