/** The recipe of examples/prometheus on a real Prometheus, which scrapes both ways in which metrics leave a process. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { metrics as api } from "@opentelemetry/api";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { prometheusMetrics } from "@payhooks/core/metrics";
import { otel } from "@payhooks/core/otel";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Scope, until } from "../faults/harness/scope.ts";
import { freePort } from "../support/free-port.ts";
import { type Eventful, eventful } from "./eventful.ts";
import { lint, Prometheus } from "./prometheus-server.ts";
import { dashboardExpressions, ruleExpressions } from "./recipe.ts";

const scope = new Scope();
const own = prometheusMetrics();
let receivers: readonly Eventful[];
let prometheus: Prometheus;

beforeAll(async () => {
  const port = await freePort();
  const exporter = new PrometheusExporter({ port, host: "127.0.0.1" });
  await exporter.startServer();
  api.setGlobalMeterProvider(new MeterProvider({ readers: [exporter] }));
  scope.add(exporter, async (one) => {
    api.disable();
    await one.stopServer();
  });
  const route = createServer(async (_request, response) => {
    response.setHeader("content-type", own.contentType).end(await own.text());
  }).listen(0, "127.0.0.1");
  scope.add(route, (one) => one.close());
  await new Promise((resolve) => route.once("listening", resolve));
  receivers = [
    scope.add(eventful(own), (one) => one.close()),
    scope.add(eventful(otel()), (one) => one.close()),
  ];
  prometheus = await Prometheus.start(scope, [
    `127.0.0.1:${(route.address() as AddressInfo).port}`,
    `127.0.0.1:${port}`,
  ]);
});
afterAll(() => scope.close());

const everything = async (): Promise<void> => {
  for (const one of receivers) await one.round();
};

it("every panel of the dashboard finds something, and every rule can be evaluated", async () => {
  for (const expression of dashboardExpressions()) {
    await until(`an answer to ${expression}`, async () => {
      await everything();
      return (await prometheus.query(expression)).length > 0;
    });
  }
  const rules = await until("the rules are evaluated", async () => {
    const loaded = await prometheus.rules();
    return loaded.every(({ health }) => health !== "unknown") && loaded;
  });
  expect(rules.map(({ health }) => health)).toEqual(ruleExpressions().map(() => "ok"));
  await until("the alert about held events", async () => {
    await everything();
    return (await prometheus.query('ALERTS{alertname="PayhooksEventsHeld",alertstate="firing"}')).length > 0;
  });
});

it("both ways have the same series", async () => {
  const names = await prometheus.query(
    'count by (instance, __name__) ({job="payhooks", __name__=~"(payhooks|messaging)_.+"})',
  );
  const [one = [], other = [], ...none] = [...new Set(names.map(({ metric }) => metric.instance))].map(
    (instance) =>
      names.filter(({ metric }) => metric.instance === instance).map(({ metric }) => metric.__name__),
  );
  expect(none).toEqual([]);
  expect(one.length).toBeGreaterThan(10);
  expect(one.sort()).toEqual(other.sort());
});

it("Prometheus's own tool finds nothing wrong with the text of the scrape route", async () => {
  expect(lint(await own.text())).toBe("");
});
