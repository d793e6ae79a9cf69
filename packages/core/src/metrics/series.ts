import type { Sink } from "./measure.ts";
import { type Attributes, BUCKETS, COUNTERS, HISTOGRAMS, type Metric } from "./table.ts";
import { type MetricLine, writeMetric, writeNumber } from "./text.ts";

/** How many series a metric may have. Measurements with further attributes are added up in one more series. */
const MAX_SERIES = 1_000;
const OVERFLOW: Attributes = { "otel.metric.overflow": "true" };

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
export class SeriesSink implements Sink {
  readonly #counters = new Map<Metric, Map<string, CounterSeries>>();
  readonly #histograms = new Map<Metric, Map<string, HistogramSeries>>();

  count(metric: Parameters<Sink["count"]>[0], attributes: Attributes): void {
    seriesOf(this.#counters, COUNTERS[metric], attributes, (labels) => ({ labels, count: 0 })).count++;
  }

  time(metric: Parameters<Sink["time"]>[0], seconds: number, attributes: Attributes): void {
    const series = seriesOf(this.#histograms, HISTOGRAMS[metric], attributes, (labels) => ({
      labels,
      count: 0,
      sum: 0,
      buckets: BUCKETS.map(() => 0),
    }));
    series.count++;
    series.sum += seconds;
    const at = BUCKETS.findIndex((bound) => seconds <= bound);
    if (at >= 0) series.buckets[at] = (series.buckets[at] ?? 0) + 1;
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
  let below = 0;
  const bounded = BUCKETS.map((bound, at): MetricLine => {
    below += buckets[at] ?? 0;
    return { suffix: "_bucket", labels: { ...labels, le: writeNumber(bound) }, value: below };
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
  let ofMetric = all.get(metric);
  if (ofMetric === undefined) {
    ofMetric = new Map();
    all.set(metric, ofMetric);
  }
  const key = JSON.stringify(Object.values(attributes));
  const known = ofMetric.get(key);
  if (known !== undefined) return known;
  if (ofMetric.size >= MAX_SERIES && attributes !== OVERFLOW) return seriesOf(all, metric, OVERFLOW, make);
  const made = make(attributes);
  ofMetric.set(key, made);
  return made;
}
