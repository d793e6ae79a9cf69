/**
 * Metrics for Prometheus, without OpenTelemetry.
 *
 * @module
 */

export { prometheusCounts } from "./counts.ts";
export { type PrometheusMetrics, prometheusMetrics } from "./prometheus.ts";
