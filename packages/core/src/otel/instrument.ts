import {
  type Attributes,
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { countOf, type MetricSink, measureDelivery, measureHandler } from "../metrics/measure.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import type {
  DeliveryEnd,
  DeliveryFacts,
  EndedFacts,
  HandlerEnd,
  HandlerFacts,
  Instrumentation,
  Observation,
  ObservedReceiver,
} from "../receiver/instrumentation.ts";
import { formatTrace, parseTrace } from "./kept-trace.ts";
import { openMeters } from "./meters.ts";

/** Options of {@link otel}. */
export interface OtelOptions {
  /**
   * Also adds attributes to spans that may identify a person or a payment: the transaction's or webhook's id, the merchant's
   * reference, the tenant, and the message of an error that a handler has thrown. Default false.
   */
  readonly personal?: boolean | undefined;
}

/** The header fields in which a sender names its trace. */
const TRACE_HEADERS = ["traceparent", "b3", "x-b3-traceid", "x-amzn-trace-id", "uber-trace-id"];

/**
 * Traces and measures a receiver with OpenTelemetry: `createReceiver({ instrumentation: otel() })`. It uses the SDK
 * that the application has registered. The SDK may be registered at any time: `otel` makes its instruments at the first
 * delivery, call of a handler or counted notice after that. Without an SDK it does nothing.
 *
 * - The span `accept FLOW` is from a delivery's bytes to its answer, under the span that is active then. If the sender has chosen
 *   the trace of the active span, `accept` begins a trace of its own, with a link.
 * - The span `process FLOW` is one call of a handler, wherever and whenever it happens. It is a child of the `accept` span, whose
 *   context the record keeps, and it is active while the handler runs.
 * - The spans `hold FLOW` and `overtake FLOW` have no duration. They show that a run has put the event on hold, or has
 *   found that a later event of its subject had overtaken it.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for an option that does not exist.
 * @example createReceiver({ payments: { publicKey }, instrumentation: otel() });
 */
export function otel(options: OtelOptions = {}): Instrumentation {
  checkNames("otel", options, { personal: true });
  checkFlag("personal of otel", options.personal);
  return new OtelInstrumentation(options.personal === true);
}

class OtelInstrumentation implements Instrumentation {
  readonly #isPersonal: boolean;
  readonly #tracer: Tracer = trace.getTracer("@payhooks/core");
  #receiver: ObservedReceiver | null = null;
  /** Null until the application has registered its SDK. That may be after deliveries have come. */
  #sink: MetricSink | null = null;

  constructor(isPersonal: boolean) {
    this.#isPersonal = isPersonal;
  }

  attach(receiver: ObservedReceiver): void {
    this.#receiver = receiver;
  }

  onNotice(notice: Parameters<Instrumentation["onNotice"]>[0]): void {
    const counted = countOf(notice);
    if (counted !== null) this.#meters()?.count(...counted);
  }

  observeDelivery({ flow, header }: DeliveryFacts): Observation<DeliveryEnd> | null {
    const sink = this.#meters();
    const parent = context.active();
    const span = this.#startAccept(flow, header, parent);
    const keptText = hasNoTrace(span) ? null : formatTrace(span.spanContext());
    if (sink === null && keptText === null) return null;
    const beganAt = sink === null ? 0 : performance.now();
    return {
      trace: keptText,
      run: (call) => context.with(trace.setSpan(parent, span), call),
      end: (end) => {
        if (sink !== null) measureDelivery(sink, flow, end, (performance.now() - beganAt) / 1_000);
        if (span.isRecording()) span.setAttributes(attributesOfEnd(end));
        // An error of the sender, such as a bad signature, is not an error of this process.
        if (end.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  }

  observeHandler(facts: HandlerFacts): Observation<HandlerEnd> | null {
    const sink = this.#meters();
    const [activeContext, span] = this.#startLater("process", facts, SpanKind.CONSUMER);
    if (sink === null && hasNoTrace(span)) return null;
    if (span.isRecording()) {
      span.setAttributes({
        "payhooks.handler": facts.handler,
        "payhooks.attempt": facts.attempt,
      });
    }
    const beganAt = sink === null ? 0 : performance.now();
    return {
      trace: null,
      run: (call) => context.with(activeContext, call),
      end: (end) => {
        if (sink !== null) measureHandler(sink, facts, end, (performance.now() - beganAt) / 1_000);
        if (span.isRecording()) this.#describe(span, end);
        span.end();
      },
    };
  }

  onEventEnd(facts: EndedFacts): void {
    const { outcome, reason } = facts;
    const [, span] = this.#startLater(outcome === "held" ? "hold" : "overtake", facts, SpanKind.INTERNAL);
    if (reason !== null && span.isRecording()) {
      span.setAttribute("payhooks.reason", reason).setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  }

  #meters(): MetricSink | null {
    this.#sink ??= openMeters(this.#receiver);
    return this.#sink;
  }

  /** The sender's trace is never continued: it could put all events into one trace, and decide which of them are sampled. */
  #startAccept(flow: string, header: DeliveryFacts["header"], parent: Context): Span {
    const options = { kind: SpanKind.CONSUMER, attributes: messagingAttributes("accept", "receive", flow) };
    const parentSpan = trace.getSpanContext(parent);
    if (parentSpan === undefined) return this.#tracer.startSpan(`accept ${flow}`, options, parent);
    const isSenders =
      parentSpan.isRemote === true ||
      TRACE_HEADERS.some((name) =>
        header(name)?.toLowerCase().replaceAll("-", "").includes(parentSpan.traceId),
      );
    if (!isSenders) return this.#tracer.startSpan(`accept ${flow}`, options, parent);
    return this.#tracer.startSpan(
      `accept ${flow}`,
      { ...options, root: true, links: [{ context: parentSpan }] },
      parent,
    );
  }

  /** A span of something that comes after the acceptance, and the context in which it is active. */
  #startLater(
    operation: "process" | "hold" | "overtake",
    facts: HandlerFacts | EndedFacts,
    kind: SpanKind,
  ): [Context, Span] {
    const { flow, eventId, event, status, replays } = facts;
    const acceptingSpan = parseTrace(facts.trace);
    // The first attempt is called in the context of its request. A span there may belong to the sender's trace.
    const here = propagation.deleteBaggage(trace.deleteSpan(context.active()));
    const parent = acceptingSpan === null ? here : trace.setSpanContext(here, acceptingSpan);
    const attributes = messagingAttributes(operation, "process", flow);
    attributes["messaging.message.id"] = eventId;
    attributes["payhooks.event"] = event;
    attributes["payhooks.status"] = status;
    attributes["payhooks.replays"] = replays;
    if (this.#isPersonal) {
      attributes["payhooks.id"] = facts.id;
      attributes["payhooks.tenant"] = facts.tenant;
      if (facts.referenceId !== null) attributes["payhooks.reference"] = facts.referenceId;
    }
    const span = this.#tracer.startSpan(`${operation} ${flow}`, { kind, attributes }, parent);
    return [trace.setSpan(here, span), span];
  }

  #describe(span: Span, { outcome, error }: HandlerEnd): void {
    span.setAttribute("payhooks.outcome", outcome);
    if (outcome === "done") return;
    span.setAttribute("error.type", error instanceof Error ? error.name : "_OTHER");
    const message = this.#isPersonal && error instanceof Error ? error.message.slice(0, 500) : undefined;
    span.setStatus({
      code: SpanStatusCode.ERROR,
      ...(message === undefined ? {} : { message }),
    });
  }
}

/** True if no SDK for traces is registered, and nothing above the span has a trace. */
function hasNoTrace(span: Span): boolean {
  return !trace.isSpanContextValid(span.spanContext());
}

function messagingAttributes(name: string, type: "receive" | "process", flow: string): Attributes {
  return {
    "messaging.system": "payhooks",
    "messaging.operation.name": name,
    "messaging.operation.type": type,
    "messaging.destination.name": flow,
  };
}

function attributesOfEnd({ outcome, status, code, eventId, reason }: DeliveryEnd): Attributes {
  const attributes: Attributes = { "payhooks.outcome": outcome, "http.response.status_code": status };
  if (code !== null) attributes["error.type"] = code;
  if (eventId !== null) attributes["messaging.message.id"] = eventId;
  if (reason !== null) attributes["payhooks.reason"] = reason;
  return attributes;
}
