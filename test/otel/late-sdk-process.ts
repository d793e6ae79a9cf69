/**
 * One process whose SDK for metrics is registered after a delivery and a counted notice. It prints how often each counter has
 * counted after that, and ends.
 */
import { metrics } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { createReceiver, memoryInbox, Reject } from "@payhooks/core";
import { otel } from "@payhooks/core/otel";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { deliveryOf } from "../../packages/core/test/receiving.ts";
import { silent } from "../support/silent.ts";

const { publicKey, privateKey } = createTestKeys();
const receiver = createReceiver({
  payments: { publicKey },
  inbox: memoryInbox(),
  logger: silent,
  run: "after-response",
  instrumentation: otel(),
});
receiver.ignore("WITHDRAWAL").onDeposit(() => {
  throw new Reject("no such order");
});

/** Delivers an event that is put on hold, which is counted. */
async function deliver(): Promise<void> {
  const work: Promise<unknown>[] = [];
  const sent = deliveryOf(signPaymentCallback(callbackFields(), privateKey));
  await receiver.payments.receive({ ...sent, waitUntil: (one) => work.push(one) }, { mounted: true });
  await Promise.all(work);
}

await deliver();
const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter });
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
await deliver();
await deliver();
await reader.forceFlush();
const counted = exporter
  .getMetrics()
  .flatMap(({ scopeMetrics }) => scopeMetrics)
  .flatMap((scope) => scope.metrics)
  .map(({ descriptor, dataPoints }) => [
    descriptor.name,
    dataPoints.map(({ value }) => (typeof value === "number" ? value : value.count)),
  ]);
console.log(JSON.stringify(Object.fromEntries(counted)));
await receiver.close();
await reader.shutdown();
