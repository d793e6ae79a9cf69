/** The same events are the same metrics, through OpenTelemetry's exporter and on a scrape route. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { metrics } from "@opentelemetry/api";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import {
  createReceiver,
  type Instrumentation,
  memoryInbox,
  type PaymentStatus,
  Reject,
} from "@payhooks/core";
import { prometheusMetrics } from "@payhooks/core/metrics";
import { otel } from "@payhooks/core/otel";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it, onTestFinished } from "vitest";
import { SeriesSink } from "../../packages/core/src/metrics/series.ts";
import { COUNTERS, GAUGES, HISTOGRAMS } from "../../packages/core/src/metrics/table.ts";
import { prometheusName } from "../../packages/core/src/metrics/text.ts";
import { deliveryOf } from "../../packages/core/test/receiving.ts";
import { silent } from "../support/silent.ts";

const { publicKey, privateKey } = createTestKeys();
const stranger = createTestKeys().privateKey;

/** Events with every kind of result; then `read` is called, with the receiver still open. */
async function measured(instrumentation: Instrumentation, read: () => Promise<string>): Promise<string> {
  const clock = fakeClock();
  const receiver = createReceiver({
    payments: { publicKey },
    inbox: memoryInbox({ clock }),
    clock,
    logger: silent,
    run: "after-response",
    alerts: { threshold: 1 },
    instrumentation,
  });
  receiver.ignore("WITHDRAWAL").onDeposit(({ referenceId }) => {
    if (referenceId === "turned down") throw new Reject("no");
    if (referenceId === "put off") throw new Error("not now");
  });
  const send = async (
    payTxnId: string,
    referenceId: string,
    { status = "SUCCESS", key = privateKey }: { status?: PaymentStatus; key?: string } = {},
  ) => {
    const work: Promise<unknown>[] = [];
    const sent = deliveryOf(signPaymentCallback(callbackFields({ payTxnId, referenceId, status }), key));
    await receiver.payments.receive({ ...sent, waitUntil: (one) => work.push(one) }, { mounted: true });
    await Promise.all(work);
  };
  await send("one", "plain");
  await send("one", "plain");
  await send("one", "plain", { status: "PENDING" });
  await send("two", "turned down");
  await send("three", "put off");
  await send("four", "forged", { key: stranger });
  const text = await read();
  await receiver.close();
  return text;
}

/** The families of metrics, with their types. */
function familiesIn(text: string): readonly string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("# TYPE ") && !line.includes(" target_info "))
    .sort();
}

/** The lines of samples, without those that depend on how fast this machine is. */
function countsIn(text: string): readonly string[] {
  return text
    .split("\n")
    .filter((line) => /^(?:messaging|payhooks)_/.test(line) && !/_(?:bucket|sum)\{/.test(line))
    .map((line) => {
      const [, name = "", labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
      const own = labels
        .split(/,(?=\w+=)/)
        .filter((label) => label !== "" && !label.startsWith("otel_scope_"));
      return `${name} ${own.sort().join(" ")} ${value}`;
    })
    .sort();
}

it("a scrape route has the metrics of OpenTelemetry's exporter for Prometheus, with the same names and counts", async () => {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [exporter] }));
  onTestFinished(() => metrics.disable());
  const exported = await measured(otel(), async () => {
    const { resourceMetrics, errors } = await exporter.collect();
    expect(errors).toEqual([]);
    return new PrometheusSerializer().serialize(resourceMetrics);
  });
  const own = prometheusMetrics();
  const scraped = await measured(own, () => own.text());
  expect(familiesIn(scraped)).toEqual(familiesIn(exported));
  expect(countsIn(scraped)).toEqual(countsIn(exported));

  const all = [COUNTERS, HISTOGRAMS, GAUGES].flatMap((table) => Object.values(table));
  for (const metric of all.filter(({ name }) => name !== COUNTERS.doubleRisks.name)) {
    expect(scraped).toContain(`# TYPE ${prometheusName(metric)} ${metric.kind}\n`);
  }
  expect(scraped).not.toMatch(/plain|turned down|put off|forged/);
});

it("an SDK that is registered after a delivery and a counted notice gets the metrics of what comes next", async () => {
  const program = fileURLToPath(new URL("late-sdk-process.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--conditions=payhooks-source",
    "--import=tsx",
    program,
  ]);
  expect(JSON.parse(stdout)).toMatchObject({
    [COUNTERS.deliveries.name]: [2],
    [COUNTERS.held.name]: [2],
    [HISTOGRAMS.acceptDuration.name]: [2],
  });
});

it("a scrape route is answered by what Prometheus can read, and says so", async () => {
  const own = prometheusMetrics();
  let type: string | null = null;
  const text = await measured(own, async () => {
    const response = await own.response();
    type = response.headers.get("content-type");
    return response.text();
  });
  expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(text).toMatch(/^messaging_process_duration_bucket\{.*le="\+Inf"\} 1$/m);
  expect(text).toMatch(/^payhooks_events\{messaging_system="payhooks",payhooks_state="held"\} 1$/m);
});

it("labels are escaped, and a metric never has more series than it may", () => {
  const sink = new SeriesSink();
  sink.count("held", { reason: 'a "b"\\\n' });
  expect(sink.text()).toContain('payhooks_held_total{reason="a \\"b\\"\\\\\\n"} 1\n');
  for (let n = 0; n < 1_500; n++) sink.count("held", { reason: `reason ${n}` });
  const lines = sink
    .text()
    .split("\n")
    .filter((line) => line.startsWith("payhooks_held_total"));
  expect(lines).toHaveLength(1_001);
  expect(lines.at(-1)).toBe('payhooks_held_total{otel_metric_overflow="true"} 501');
});
