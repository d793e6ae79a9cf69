/**
 * The metrics, for both OpenTelemetry and Prometheus. If OpenTelemetry's conventions for messaging have a name, a metric has that
 * name. Otherwise its name begins with `payhooks.`.
 */

/** One metric. */
export interface Metric {
  readonly name: string;
  readonly kind: "counter" | "histogram" | "gauge";
  /** As in OpenTelemetry: `s` for seconds; a word in braces for what is counted. */
  readonly unit: string;
  readonly description: string;
}

/** The attributes of a measurement. Their values come from closed lists, or are names that the merchant has chosen. */
export type Attributes = Readonly<Record<string, string | number>>;

export type CounterName = "deliveries" | "retries" | "held" | "stale" | "doubleRisks" | "alerts";
export type HistogramName = "acceptDuration" | "handlerDuration";
export type GaugeName = "events" | "oldestDue";

const counter = (name: string, unit: string, description: string): Metric => ({
  name,
  kind: "counter",
  unit,
  description,
});
const histogram = (name: string, description: string): Metric => ({
  name,
  kind: "histogram",
  unit: "s",
  description,
});

export const COUNTERS: Readonly<Record<CounterName, Metric>> = {
  deliveries: counter(
    "messaging.client.consumed.messages",
    "{message}",
    "Deliveries that were answered, by flow, outcome and status code",
  ),
  retries: counter(
    "payhooks.handler.retries",
    "{retry}",
    "Calls of handlers that failed and are tried again",
  ),
  held: counter("payhooks.held", "{event}", "Events that were held, by reason"),
  stale: counter(
    "payhooks.stale",
    "{event}",
    "Events that were not run to their end, because a later one had overtaken them",
  ),
  doubleRisks: counter(
    "payhooks.double_risks",
    "{event}",
    "Times that a handler may run, or may have run, a second time, by cause",
  ),
  alerts: counter("payhooks.alerts", "{alert}", "Alerts about deliveries that were refused, by kind"),
};

export const HISTOGRAMS: Readonly<Record<HistogramName, Metric>> = {
  acceptDuration: histogram(
    "messaging.client.operation.duration",
    "Time from a delivery's bytes to its answer",
  ),
  handlerDuration: histogram("messaging.process.duration", "Duration of one call of a handler"),
};

/** They describe the inbox, so every process on one inbox has the same values. */
export const GAUGES: Readonly<Record<GaugeName, Metric>> = {
  events: {
    name: "payhooks.events",
    kind: "gauge",
    unit: "{event}",
    description: "Events in the inbox that are not finished, by state",
  },
  oldestDue: {
    name: "payhooks.due.oldest_age",
    kind: "gauge",
    unit: "s",
    description: "For how long the event that waits longest has been due",
  },
};

/** The upper bounds of the histograms' buckets, in seconds: those that the conventions advise. */
export const BUCKET_BOUNDS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
