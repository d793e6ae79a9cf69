import type { Health } from "../inbox/contract/inbox.ts";
import type { UndatedNotice } from "../notices/notice.ts";
import type { FlowName } from "../protocol/events.ts";
import type { DeliveryEnd, HandlerEnd } from "../receiver/instrumentation.ts";
import type { Attributes, CounterName, HistogramName } from "./table.ts";

/** The receiver of measurements. */
export interface MetricSink {
  count(metric: CounterName, attributes: Attributes): void;
  recordDuration(metric: HistogramName, seconds: number, attributes: Attributes): void;
}

const SYSTEM_NAME = "payhooks";
/** The attribute that every measurement has, as the conventions ask. */
const SYSTEM_ATTRIBUTES = { "messaging.system": SYSTEM_NAME } as const;

/** Attributes of the measurements for each event. They are written out, because a spread would cost microseconds. */
type MutableAttributes = Record<string, string | number>;

export function measureDelivery(sink: MetricSink, flow: FlowName, end: DeliveryEnd, seconds: number): void {
  const attributes: MutableAttributes = {
    "messaging.system": SYSTEM_NAME,
    "messaging.operation.name": "accept",
    "messaging.destination.name": flow,
    "payhooks.outcome": end.outcome,
    "http.response.status_code": end.status,
  };
  if (end.code !== null) attributes["error.type"] = end.code;
  sink.count("deliveries", attributes);
  sink.recordDuration("acceptDuration", seconds, attributes);
}

/** A call of a handler. Its error is not among the attributes: a merchant's errors may have any name. */
export function measureHandler(
  sink: MetricSink,
  { flow, handler }: { readonly flow: FlowName; readonly handler: string },
  { outcome }: HandlerEnd,
  seconds: number,
): void {
  const attributes: MutableAttributes = {
    "messaging.system": SYSTEM_NAME,
    "messaging.operation.name": "process",
    "messaging.destination.name": flow,
    "payhooks.handler": handler,
  };
  if (outcome === "retry") sink.count("retries", { ...attributes });
  attributes["payhooks.outcome"] = outcome;
  if (outcome !== "done") attributes["error.type"] = "_OTHER";
  sink.recordDuration("handlerDuration", seconds, attributes);
}

/** A count of one. */
type CounterIncrement = readonly [CounterName, Attributes];

/** The count that comes from this notice only; null if the notice is not counted. */
export function countOf(notice: UndatedNotice): CounterIncrement | null {
  switch (notice.type) {
    case "held":
      return ["held", { ...flowAttributes(notice), "payhooks.reason": notice.reason }];
    case "stale":
      return ["stale", flowAttributes(notice)];
    case "double-risk":
      return ["doubleRisks", { ...flowAttributes(notice), "payhooks.why": notice.why }];
    case "alert":
      return [
        "alerts",
        { ...flowAttributes(notice), "payhooks.kind": notice.kind, "error.type": notice.code },
      ];
    default:
      return null;
  }
}

function flowAttributes({ flow }: { readonly flow: FlowName }): Attributes {
  return { ...SYSTEM_ATTRIBUTES, "messaging.destination.name": flow };
}

/** The counts of an inbox as values of the gauge `events`, by state. Unknown counts are left out. */
export function stateCounts(health: Pick<Health, "waiting" | "retrying" | "running" | "held">): readonly {
  readonly attributes: Attributes;
  readonly count: number;
}[] {
  const { waiting, retrying, running, held } = health;
  return Object.entries({ waiting, retrying, running, held }).flatMap(([state, count]) =>
    count === null ? [] : [{ attributes: { ...SYSTEM_ATTRIBUTES, "payhooks.state": state }, count }],
  );
}

/** The value of the gauge `oldestDue` in seconds; 0 if nothing is due, null if it is not known. */
export function oldestDueSeconds({ oldestDueMs, waiting }: Pick<Health, "oldestDueMs" | "waiting">): {
  readonly attributes: Attributes;
  readonly seconds: number;
} | null {
  if (oldestDueMs === null && waiting === null) return null;
  return { attributes: SYSTEM_ATTRIBUTES, seconds: (oldestDueMs ?? 0) / 1_000 };
}
