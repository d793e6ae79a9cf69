/** One process of a traced shop: it takes one step with an event, prints its spans, and ends. */
import { createRequire } from "node:module";
import { SpanKind, trace } from "@opentelemetry/api";
import { PgInstrumentation } from "@opentelemetry/instrumentation-pg";
import { createReceiver } from "@payhooks/core";
import { otel } from "@payhooks/core/otel";
import { postgresInbox } from "@payhooks/core/postgres";
import { redisInbox } from "@payhooks/core/redis";
import { callbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { Redis } from "ioredis";
import { deliveryOf } from "../../packages/core/test/receiving.ts";
import { pause, until } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import { startMemorySdk } from "./memory-sdk.ts";
import { type PrintedSpan, TRACED_VARIABLE, type TracedStep } from "./traced-step.ts";

const { step, postgres, redis, name, publicKey, privateKey } = JSON.parse(
  process.env[TRACED_VARIABLE] ?? "",
) as TracedStep;

const sdk = startMemorySdk();
const instrumentation = new PgInstrumentation();
instrumentation.setTracerProvider(trace.getTracerProvider());
const pg = createRequire(import.meta.url)("pg") as typeof import("pg");

const pool = new pg.Pool({ connectionString: postgres });
const connection = redis === null ? null : new Redis(redis);
const receiver = createReceiver({
  payments: { publicKey },
  inbox:
    connection === null ? postgresInbox(pool, { schema: name }) : redisInbox(connection, { prefix: name }),
  run: step === "accept" ? "after-response" : "background",
  logger: silent,
  instrumentation: otel(),
});
receiver.ignore("WITHDRAWAL").onDeposit(
  async () => {
    await pause(1);
    await pool.query(`SELECT '${step}'`);
    if (step !== "replay") throw new Error(`the attempt of ${step} fails`);
  },
  { maxAttempts: 2, backoffMs: () => 300 },
);
const held = async () => (await receiver.events.list({})).events[0] ?? null;

if (step === "accept") {
  const work: Promise<unknown>[] = [];
  const sent = deliveryOf(signPaymentCallback(callbackFields(), privateKey));
  await trace
    .getTracer("framework")
    .startActiveSpan("POST /payhooks", { kind: SpanKind.SERVER }, async (span) => {
      await receiver.payments.receive({ ...sent, waitUntil: (one) => work.push(one) }, { mounted: true });
      span.end();
    });
  await Promise.all(work);
} else if (step === "retry") {
  await until("the event is held", async () => {
    await receiver.work();
    return held();
  });
} else {
  const entry = await held();
  if (entry === null) throw new Error("nothing is held");
  await receiver.events.replay(entry.eventId, { by: "a person", note: "the shop is mended" });
  await receiver.work();
}
await receiver.close();
await pool.end();
connection?.disconnect();

const printed = sdk.spans().map((span): PrintedSpan => {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    traceId,
    spanId,
    parent: span.parentSpanContext?.spanId ?? null,
    attributes: span.attributes,
  };
});
console.log(JSON.stringify(printed));
