/**
 * Traces and metrics through OpenTelemetry. The peer `@opentelemetry/api` must be installed.
 *
 * @module
 */

export type { Instrumentation } from "../receiver/instrumentation.ts";
export { type OtelOptions, otel } from "./instrument.ts";
