import type { UndatedNotice } from "../notices/notice.ts";
import type {
  DeliveryEnd,
  DeliveryFacts,
  HandlerEnd,
  HandlerFacts,
  Instrumentation,
  Observation,
  ObservedReceiver,
} from "../receiver/instrumentation.ts";
import { prometheusCounts } from "./counts.ts";
import { countOf, measureDelivery, measureHandler } from "./measure.ts";
import { SeriesSink } from "./series.ts";
import { CONTENT_TYPE } from "./text.ts";

/** Metrics of one receiver, for a scraper. */
export interface PrometheusMetrics extends Instrumentation {
  /** The media type of {@link PrometheusMetrics.text}. */
  readonly contentType: string;
  /** All metrics in Prometheus's text format. Never rejects: if the inbox does not answer, its counts are left out. */
  text(): Promise<string>;
  /** The text as a web-standard response. Anybody who can call the route can read it, so do not let strangers reach it. */
  response(): Promise<Response>;
}

/**
 * Measures a receiver without OpenTelemetry: `createReceiver({ instrumentation: metrics })`, and a route that answers with
 * `metrics.response()` or `metrics.text()`. Names and labels are those of `@payhooks/core/otel`. Labels have neither ids nor
 * references, and a metric keeps at most 1,000 combinations of them.
 *
 * @example
 * ```ts
 * const metrics = prometheusMetrics();
 * const receiver = createReceiver({ payments: { publicKey }, instrumentation: metrics });
 * app.get("/metrics", async (_, res) => res.type(metrics.contentType).send(await metrics.text()));
 * ```
 */
export function prometheusMetrics(): PrometheusMetrics {
  return new Prometheus();
}

class Prometheus implements PrometheusMetrics {
  readonly contentType: string = CONTENT_TYPE;
  readonly #sink = new SeriesSink();
  #receiver: ObservedReceiver | null = null;

  attach(receiver: ObservedReceiver): void {
    this.#receiver = receiver;
  }

  onNotice(notice: UndatedNotice): void {
    const increment = countOf(notice);
    if (increment !== null) this.#sink.count(...increment);
  }

  observeDelivery({ flow }: DeliveryFacts): Observation<DeliveryEnd> {
    return startObservation((end, seconds) => measureDelivery(this.#sink, flow, end, seconds));
  }

  observeHandler(facts: HandlerFacts): Observation<HandlerEnd> {
    return startObservation((end, seconds) => measureHandler(this.#sink, facts, end, seconds));
  }

  onEventEnd(): void {}

  async text(): Promise<string> {
    let counts = "";
    try {
      const health = await this.#receiver?.health();
      if (health !== undefined) counts = prometheusCounts(health);
    } catch {
      // The inbox does not answer. The scraper sees that its counts are absent, and gets everything else.
    }
    return this.#sink.text() + counts;
  }

  async response(): Promise<Response> {
    const headers = { "content-type": CONTENT_TYPE, "cache-control": "no-store" };
    return new Response(await this.text(), { headers });
  }
}

function startObservation<End>(onEnd: (end: End, seconds: number) => void): Observation<End> {
  const began = performance.now();
  return {
    trace: null,
    run: (call) => call(),
    end: (end) => onEnd(end, (performance.now() - began) / 1_000),
  };
}
