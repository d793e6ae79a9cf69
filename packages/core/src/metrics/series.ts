import type { MetricSink } from "./measure.ts";
import { type Attributes, BUCKET_BOUNDS, COUNTERS, HISTOGRAMS, type Metric } from "./table.ts";
import { type MetricLine, writeMetric, writeNumber } from "./text.ts";

/** How many series a metric may have. Measurements with further attributes are added up in one more series. */
const MAX_SERIES = 1_000;
const OVERFLOW_ATTRIBUTES: Attributes = { "otel.metric.overflow": "true" };

interface CounterSeries {
  readonly labels: Attributes;
  count: number;
}

interface HistogramSeries extends CounterSeries {
  sum: number;
  /** How many measurements are in each bucket, and not in an earlier one. */
  readonly buckets: number[];
}

/** Counters and histograms in memory, since the process began. */
export class SeriesSink implements MetricSink {
  readonly #counters = new Map<Metric, Map<string, CounterSeries>>();
  readonly #histograms = new Map<Metric, Map<string, HistogramSeries>>();

  count(metric: Parameters<MetricSink["count"]>[0], attributes: Attributes): void {
    seriesOf(this.#counters, COUNTERS[metric], attributes, (labels) => ({ labels, count: 0 })).count++;
  }

  recordDuration(
    metric: Parameters<MetricSink["recordDuration"]>[0],
    seconds: number,
    attributes: Attributes,
  ): void {
    const series = seriesOf(this.#histograms, HISTOGRAMS[metric], attributes, (labels) => ({
      labels,
      count: 0,
      sum: 0,
      buckets: BUCKET_BOUNDS.map(() => 0),
    }));
    series.count++;
    series.sum += seconds;
    const bucket = BUCKET_BOUNDS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
  }

  /** The text for Prometheus. A metric that has counted nothing yet is left out. */
  text(): string {
    const counters = [...this.#counters].map(([metric, all]) =>
      writeMetric(
        metric,
        [...all.values()].map(({ labels, count }) => ({ labels, value: count })),
      ),
    );
    const histograms = [...this.#histograms].map(([metric, all]) =>
      writeMetric(metric, [...all.values()].flatMap(samplesOf)),
    );
    return [...counters, ...histograms].join("");
  }
}

function samplesOf({ labels, count, sum, buckets }: HistogramSeries): readonly MetricLine[] {
  let cumulativeCount = 0;
  const bounded = BUCKET_BOUNDS.map((bound, index): MetricLine => {
    cumulativeCount += buckets[index] ?? 0;
    return { suffix: "_bucket", labels: { ...labels, le: writeNumber(bound) }, value: cumulativeCount };
  });
  return [
    ...bounded,
    { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: count },
    { suffix: "_sum", labels, value: sum },
    { suffix: "_count", labels, value: count },
  ];
}

function seriesOf<S>(
  all: Map<Metric, Map<string, S>>,
  metric: Metric,
  attributes: Attributes,
  make: (labels: Attributes) => S,
): S {
  let seriesByLabels = all.get(metric);
  if (seriesByLabels === undefined) {
    seriesByLabels = new Map();
    all.set(metric, seriesByLabels);
  }
  const key = JSON.stringify(Object.values(attributes));
  const knownSeries = seriesByLabels.get(key);
  if (knownSeries !== undefined) return knownSeries;
  if (seriesByLabels.size >= MAX_SERIES && attributes !== OVERFLOW_ATTRIBUTES)
    return seriesOf(all, metric, OVERFLOW_ATTRIBUTES, make);
  const newSeries = make(attributes);
  seriesByLabels.set(key, newSeries);
  return newSeries;
}
