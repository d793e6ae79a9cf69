import { type SpanContext, TraceFlags } from "@opentelemetry/api";

/** Version 1: trace, span and flags, as in a `traceparent`. */
const KEPT_TRACE_PATTERN = /^1-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const ZEROS_PATTERN = /^0+$/;

/** The text that a record keeps of the span that accepted its event. */
export function formatTrace({ traceId, spanId, traceFlags }: SpanContext): string {
  return `1-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/** The span that a kept text names; null if it is damaged, or of another version. */
export function parseTrace(text: string | null): SpanContext | null {
  const [, traceId = "0", spanId = "0", flags = "0"] = KEPT_TRACE_PATTERN.exec(text ?? "") ?? [];
  if (ZEROS_PATTERN.test(traceId) || ZEROS_PATTERN.test(spanId)) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}
