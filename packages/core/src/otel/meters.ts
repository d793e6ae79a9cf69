import { type Counter, createNoopMeter, type Histogram, metrics } from "@opentelemetry/api";
import { type MetricSink, oldestDueSeconds, stateCounts } from "../metrics/measure.ts";
import {
  BUCKET_BOUNDS,
  COUNTERS,
  type CounterName,
  GAUGES,
  HISTOGRAMS,
  type HistogramName,
  type Metric,
} from "../metrics/table.ts";
import type { ObservedReceiver } from "../receiver/instrumentation.ts";

/** Makes the instruments. Null as long as the application has registered no SDK for metrics: then nothing need be measured. */
export function openMeters(receiver: ObservedReceiver | null): MetricSink | null {
  const meter = metrics.getMeter("@payhooks/core");
  // Without an SDK, the API returns a meter that does nothing. Its instruments never become real ones, even if an SDK is
  // registered later.
  if (meter === createNoopMeter()) return null;
  const optionsOf = ({ unit, description }: Metric) => ({ unit, description });
  const counters = mapOf(COUNTERS, (metric): Counter => meter.createCounter(metric.name, optionsOf(metric)));
  const histograms = mapOf(
    HISTOGRAMS,
    (metric): Histogram =>
      meter.createHistogram(metric.name, {
        ...optionsOf(metric),
        advice: { explicitBucketBoundaries: [...BUCKET_BOUNDS] },
      }),
  );
  const events = meter.createObservableGauge(GAUGES.events.name, optionsOf(GAUGES.events));
  const oldest = meter.createObservableGauge(GAUGES.oldestDue.name, optionsOf(GAUGES.oldestDue));
  meter.addBatchObservableCallback(
    async (result) => {
      const health = await receiver?.health();
      if (health === undefined) return;
      for (const { attributes, count } of stateCounts(health)) result.observe(events, count, attributes);
      const oldestDue = oldestDueSeconds(health);
      if (oldestDue !== null) result.observe(oldest, oldestDue.seconds, oldestDue.attributes);
    },
    [events, oldest],
  );
  return {
    count: (metric: CounterName, attributes) => counters[metric].add(1, attributes),
    recordDuration: (metric: HistogramName, seconds, attributes) =>
      histograms[metric].record(seconds, attributes),
  };
}

function mapOf<K extends string, Made>(
  table: Readonly<Record<K, Metric>>,
  make: (metric: Metric) => Made,
): Readonly<Record<K, Made>> {
  const instruments = Object.entries<Metric>(table).map(([key, metric]) => [key, make(metric)] as const);
  return Object.fromEntries(instruments) as Record<K, Made>;
}
