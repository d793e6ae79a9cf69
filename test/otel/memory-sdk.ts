import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";

/** An SDK that keeps every span in memory. `close` takes it off again. */
export interface MemorySdk {
  spans(): readonly ReadableSpan[];
  close(): void;
}

export function startMemorySdk(): MemorySdk {
  const exporter = new InMemorySpanExporter();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  return {
    spans: () => exporter.getFinishedSpans(),
    close() {
      trace.disable();
      context.disable();
      metrics.disable();
    },
  };
}
