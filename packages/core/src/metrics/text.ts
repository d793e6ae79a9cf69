import type { Attributes, Metric } from "./table.ts";

/** The media type of Prometheus's text format. */
export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** One line of a metric. `suffix` is what follows the name, such as `_bucket`. */
export interface MetricLine {
  readonly suffix?: string;
  readonly labels: Attributes;
  readonly value: number;
}

/** The name as the exporter for Prometheus of OpenTelemetry's SDK writes it. That one adds no unit. */
export function prometheusName({ name, kind }: Metric): string {
  const plain = plainName(name);
  return kind === "counter" ? `${plain}_total` : plain;
}

/** One metric with its samples. */
export function writeMetric(metric: Metric, samples: readonly MetricLine[]): string {
  const name = prometheusName(metric);
  const lines = samples.map(
    ({ suffix = "", labels, value }) => `${name}${suffix}${writeLabels(labels)} ${writeNumber(value)}\n`,
  );
  return `# HELP ${name} ${escapeHelp(metric.description)}\n# TYPE ${name} ${metric.kind}\n${lines.join("")}`;
}

/** A number as Prometheus reads it. */
export function writeNumber(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

/** Prometheus's names have no dots. */
function plainName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_]/g, "_");
}

function writeLabels(labels: Attributes): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${plainName(name)}="${escapeLabel(String(value))}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
