/** The process that `otel.ts` measures: a merchant on Express, whose receiver is instrumented as the first argument says. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { createReceiver, type Instrumentation, memoryInbox } from "@payhooks/core";
import { otel } from "@payhooks/core/otel";
import { paymentCallbacks } from "@payhooks/express";
import express from "express";
import { silent } from "../support/silent.ts";

/**
 * `none`: no instrumentation. `api`: `otel()` without an SDK. `alone`: an SDK without `otel()`. `sdk`: both; every span is sampled, and
 * its exporter drops it. `spans`: the same SDK, and two spans around an event with nothing in them: see {@link emptySpans}.
 */
export type Instrumented = "none" | "api" | "alone" | "spans" | "sdk";

/** The question to the process: its processor time, once so many events were handled. */
export interface Question {
  readonly handled: number;
}

/** Microseconds of processor time since the process began. */
export interface Answer {
  readonly cpuUs: number;
}

const instrumented = process.argv[2] as Instrumented;
if (instrumented === "sdk" || instrumented === "alone" || instrumented === "spans") {
  const dropping = {
    export: (_spans: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
    shutdown: async () => {},
  };
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(dropping)] }),
  );
  const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 60_000 });
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
}

/** The least that shows an event: a span for its acceptance and one for its handler, both active, without attributes or metrics. */
function emptySpans(): Instrumentation {
  const tracer = trace.getTracer("bench");
  const observe = (name: string) => {
    const parent = context.active();
    const span = tracer.startSpan(name, undefined, parent);
    const active = trace.setSpan(parent, span);
    return { trace: null, run: <T>(call: () => T): T => context.with(active, call), end: () => span.end() };
  };
  return {
    attach() {},
    onNotice() {},
    observeDelivery: () => observe("accept"),
    observeHandler: () => observe("process"),
    onEventEnd() {},
  };
}

let handled = 0;
let waiting: { readonly until: number; readonly answer: () => void } | null = null;
const answerIfHandled = (): void => {
  if (waiting === null || handled < waiting.until) return;
  waiting.answer();
  waiting = null;
};

const receiver = createReceiver({
  payments: { publicKey: process.argv[3] ?? "" },
  inbox: memoryInbox({ maxRecords: 1_000_000 }),
  logger: silent,
  ...(instrumented === "api" || instrumented === "sdk" ? { instrumentation: otel() } : {}),
  ...(instrumented === "spans" ? { instrumentation: emptySpans() } : {}),
});
receiver.ignore("WITHDRAWAL").onDeposit(() => {
  handled++;
  // The end of its run is part of the event's cost.
  setImmediate(answerIfHandled);
});
await receiver.start();
const app = express();
app.post("/callbacks/pay", paymentCallbacks(receiver));
const server = createServer(app).listen(0, "127.0.0.1", () => {
  process.send?.((server.address() as AddressInfo).port);
});
// Longer than the turns of the other processes, between which its connections rest.
server.keepAliveTimeout = 120_000;
process.on("message", ({ handled: until }: Question) => {
  const answer = (): void => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuUs: user + system } satisfies Answer);
  };
  waiting = { until, answer };
  answerIfHandled();
});
process.on("disconnect", () => process.exit());
