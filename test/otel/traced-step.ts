import type { Attributes } from "@opentelemetry/api";

/** The environment variable with a {@link TracedStep}, as JSON. */
export const TRACED_VARIABLE = "PAYHOOKS_TRACED_STEP";

/** The step of a process: accept an event and try it once, try it a last time, or replay it. */
export interface TracedStep {
  readonly step: "accept" | "retry" | "replay";
  readonly postgres: string;
  /** Null: the inbox is in PostgreSQL. */
  readonly redis: string | null;
  /** Separates this test's data from others. */
  readonly name: string;
  readonly publicKey: string;
  readonly privateKey: string;
}

/** A span as a process prints it. */
export interface PrintedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: string | null;
  readonly attributes: Attributes;
}
