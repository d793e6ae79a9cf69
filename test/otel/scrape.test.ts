/** The scrape route as docs/operating/observability.md mounts it, on every framework, over real sockets. */
import "reflect-metadata";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Controller, Get, Header, Module } from "@nestjs/common";
import { type AbstractHttpAdapter, NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { type PrometheusMetrics, prometheusMetrics } from "@payhooks/core/metrics";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { expect, it, onTestFinished } from "vitest";
import { deliveryOf } from "../../packages/core/test/receiving.ts";
import { viaFetch } from "../conformance/servers/node-bridge.ts";
import { silent } from "../support/silent.ts";

const { publicKey, privateKey } = createTestKeys();

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  return addressOf(server);
}

function addressOf(server: Pick<Server, "address">): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
}

async function onNest(metrics: PrometheusMetrics, platform: AbstractHttpAdapter): Promise<string> {
  // Decorated without decorators, which the tests are not compiled for.
  class Metrics {
    scrape(): Promise<string> {
      return metrics.text();
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Metrics.prototype, "scrape") ?? {};
  Get()(Metrics.prototype, "scrape", descriptor);
  Header("content-type", metrics.contentType)(Metrics.prototype, "scrape", descriptor);
  Controller("metrics")(Metrics);
  class App {}
  Module({ controllers: [Metrics] })(App);
  const app = await NestFactory.create(App, platform, { logger: false });
  onTestFinished(() => app.close());
  await app.listen(0, "127.0.0.1");
  return addressOf(app.getHttpServer());
}

/** Mounts the route, and returns its address. */
const WAYS: Readonly<Record<string, (metrics: PrometheusMetrics) => Promise<string>>> = {
  Express: (metrics) => {
    const app = express();
    app.get("/metrics", async (_request, response) => {
      response.type(metrics.contentType).send(await metrics.text());
    });
    return listen(app);
  },
  Fastify: async (metrics) => {
    const app = fastify();
    app.get("/metrics", async (_request, reply) =>
      reply.type(metrics.contentType).send(await metrics.text()),
    );
    await app.listen({ port: 0, host: "127.0.0.1" });
    onTestFinished(() => app.close());
    return addressOf(app.server);
  },
  Hono: async (metrics) => {
    const app = new Hono();
    app.get("/metrics", () => metrics.response());
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    return addressOf(server);
  },
  "a route of Next.js and of others with web-standard responses": (metrics) =>
    listen(viaFetch(() => metrics.response())),
  "NestJS on Express": (metrics) => onNest(metrics, new ExpressAdapter()),
  "NestJS on Fastify": (metrics) => onNest(metrics, new FastifyAdapter()),
  "a worker without a framework": (metrics) =>
    listen(async (_request, response) => {
      response.setHeader("content-type", metrics.contentType).end(await metrics.text());
    }),
};

it.each(Object.keys(WAYS))("%s answers a scraper with what the receiver has done", async (way) => {
  const metrics = prometheusMetrics();
  const receiver = createReceiver({
    payments: { publicKey },
    inbox: memoryInbox(),
    logger: silent,
    run: "after-response",
    instrumentation: metrics,
  });
  onTestFinished(() => void receiver.close());
  receiver.ignore("WITHDRAWAL").onDeposit(() => {});
  const address = await WAYS[way]?.(metrics);
  const scrape = async () => {
    const response = await fetch(address ?? "");
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    return response.text();
  };
  expect(await scrape()).not.toContain("messaging_process_duration");
  for (const payTxnId of ["one", "two"]) {
    const work: Promise<unknown>[] = [];
    const sent = deliveryOf(
      signPaymentCallback(callbackFields({ payTxnId, referenceId: payTxnId }), privateKey),
    );
    await receiver.payments.receive({ ...sent, waitUntil: (one) => work.push(one) }, { mounted: true });
    await Promise.all(work);
  }
  expect(await scrape()).toMatch(/^messaging_process_duration_count\{.*payhooks_outcome="done"\} 2$/m);
});

it("while the inbox does not answer, its counts are absent and the rest is there", async () => {
  const metrics = prometheusMetrics();
  metrics.attach({ health: () => Promise.reject(new Error("away")) });
  metrics
    .observeDelivery({ flow: "payments", header: () => null })
    ?.end({ outcome: "refused", status: 503, code: "ERR_INBOX_UNAVAILABLE", eventId: null, reason: null });
  const text = await metrics.text();
  expect(text).toContain('error_type="ERR_INBOX_UNAVAILABLE"');
  expect(text).not.toContain("payhooks_events");
});
