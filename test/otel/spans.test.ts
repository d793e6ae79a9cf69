/** Spans of one process: whose trace they are in, and what they say. */
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { createReceiver, type Instrumentation, memoryInbox, Reject } from "@payhooks/core";
import { type OtelOptions, otel } from "@payhooks/core/otel";
import { source } from "@payhooks/core/sources";
import {
  callbackFields,
  createTestKeys,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { decodeRecord, encodeRecord } from "../../packages/core/src/inbox/record/codec.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { deliveryOf } from "../../packages/core/test/receiving.ts";
import { receiving } from "../../packages/core/test/sources/receiving.ts";
import { pause } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import { type MemorySdk, startMemorySdk } from "./memory-sdk.ts";

const { publicKey, privateKey } = createTestKeys();
const PERSONAL = { payTxnId: "tx-of-jane", referenceId: "order-of-jane" };
const SENDERS = "4bf92f3577b34da6a3ce929d0e0e4736";

let sdk: MemorySdk;
beforeAll(() => {
  sdk = startMemorySdk();
});
afterAll(() => sdk.close());

/** Delivers one event, and returns what its handler saw and the spans that it has made. */
async function deliver({
  instrumentation = otel(),
  handler = () => {},
  within = (call) => call(),
  headers = {},
}: {
  readonly instrumentation?: Instrumentation;
  readonly handler?: () => void;
  readonly within?: <T>(call: () => T) => T;
  readonly headers?: Readonly<Record<string, string>>;
}) {
  const earlier = sdk.spans().length;
  const receiver = createReceiver({
    payments: { publicKey },
    inbox: memoryInbox(),
    logger: silent,
    run: "after-response",
    instrumentation,
  });
  let ran = 0;
  receiver.ignore("WITHDRAWAL").onDeposit(() => {
    ran++;
    handler();
  });
  const sent: SignedDelivery = signPaymentCallback(callbackFields(PERSONAL), privateKey);
  const delivery = deliveryOf({ ...sent, headers: { ...sent.headers, ...headers } });
  const work: Promise<unknown>[] = [];
  const reply = await within(() =>
    receiver.payments.receive({ ...delivery, waitUntil: (one) => work.push(one) }, { mounted: true }),
  );
  await Promise.all(work);
  await receiver.close();
  const spans = sdk.spans().slice(earlier);
  return { reply, ran, spans, named: (name: string) => spans.find((span) => span.name === name) };
}

const traceOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().traceId;

function withSpan(parent: string | null): <T>(call: () => T) => T {
  return (call) => {
    const remote = { traceId: parent ?? "", spanId: "00f067aa0ba902b7", traceFlags: 1, isRemote: true };
    const above = parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote);
    const span = trace.getTracer("framework").startSpan("POST", { kind: SpanKind.SERVER }, above);
    return context.with(trace.setSpan(above, span), call);
  };
}

it("a handler's span is active while the handler runs, and is that of its own call", async () => {
  let active: string | undefined;
  const { named } = await deliver({
    handler: () => {
      active = trace.getActiveSpan()?.spanContext().spanId;
    },
  });
  const span = named("process payments");
  expect(span?.spanContext().spanId).toBe(active);
  expect(span?.parentSpanContext?.spanId).toBe(named("accept payments")?.spanContext().spanId);
});

it("a trace that the framework has begun is continued, and one that the sender has begun is only linked", async () => {
  const own = await deliver({ within: withSpan(null) });
  expect(own.named("accept payments")?.parentSpanContext).toBeDefined();

  const traceparent = `00-${SENDERS}-00f067aa0ba902b7-01`;
  const { named, spans } = await deliver({ within: withSpan(SENDERS), headers: { traceparent } });
  expect(named("accept payments")?.parentSpanContext).toBeUndefined();
  expect(named("accept payments")?.links.map((link) => link.context.traceId)).toEqual([SENDERS]);
  expect(spans.map(traceOf)).not.toContain(SENDERS);
  expect(traceOf(named("process payments"))).toBe(traceOf(named("accept payments")));
});

it("the sender's baggage does not reach a handler", async () => {
  let found: unknown = "not called";
  const baggage = propagation.createBaggage({ role: { value: "admin" } });
  await deliver({
    within: (call) => context.with(propagation.setBaggage(ROOT_CONTEXT, baggage), call),
    handler: () => {
      found = propagation.getActiveBaggage();
    },
  });
  expect(found).toBeUndefined();
});

it("attributes say nothing personal, unless asked", async () => {
  const fails = (): never => {
    throw new Reject("jane has no account");
  };
  const shown = async (options: OtelOptions): Promise<string> => {
    const { spans } = await deliver({ instrumentation: otel(options), handler: fails });
    return JSON.stringify(
      spans.map(({ name, attributes, status, events }) => [name, attributes, status, events]),
    );
  };
  expect(await shown({})).not.toMatch(/jane/);
  expect(await shown({ personal: true })).toMatch(/tx-of-jane.*order-of-jane.*jane has no account/);
});

it("a refused delivery is a span with the code of its answer", async () => {
  const receiver = createReceiver({
    payments: { publicKey },
    logger: silent,
    run: "after-response",
    instrumentation: otel(),
  });
  receiver.ignore("WITHDRAWAL").onDeposit(() => {});
  const sent = signPaymentCallback(callbackFields(), createTestKeys().privateKey);
  await receiver.payments.receive({ ...deliveryOf(sent), waitUntil: () => {} }, { mounted: true });
  expect(sdk.spans().at(-1)?.attributes).toMatchObject({
    "payhooks.outcome": "refused",
    "http.response.status_code": 401,
    "error.type": "ERR_SIGNATURE_INVALID",
  });
  await receiver.close();
});

it("the span of a delivery ends also if its answer could not be made", async () => {
  const receiver = createReceiver({
    payments: { publicKey },
    logger: silent,
    run: "after-response",
    instrumentation: otel(),
  });
  const sent = deliveryOf(signPaymentCallback(callbackFields(), privateKey));
  const earlier = sdk.spans().length;
  await expect(receiver.payments.receive({ ...sent, rawBody: undefined as never })).rejects.toThrow();
  expect(sdk.spans().slice(earlier)).toHaveLength(1);
  expect(sdk.spans().at(-1)?.attributes).toMatchObject({ "payhooks.outcome": "refused" });
  await receiver.close();
});

it("an event that a later one of its subject has overtaken says so in its own trace", async () => {
  const earlier = sdk.spans().length;
  const { post } = receiving(
    source({
      verify: () => ({ ok: true, keyId: null }),
      read: ({ body }) => ({ id: body.id, name: "status", data: body, subject: "17", occurredAt: body.at }),
    }) as never,
    { instrumentation: otel() },
  );
  await post({ body: JSON.stringify({ id: "late", at: "2026-05-01T10:00:01Z" }) });
  await post({ body: JSON.stringify({ id: "early", at: "2026-05-01T10:00:00Z" }) });
  const spans = sdk.spans().slice(earlier);
  expect(spans.map(({ name }) => name)).toEqual(["accept any", "process any", "accept any", "overtake any"]);
  const [, , accept, overtake] = spans;
  expect(overtake?.parentSpanContext?.spanId).toBe(accept?.spanContext().spanId);
  expect(overtake?.status.code).toBe(SpanStatusCode.UNSET);
});

it("the time that a call waits for its place among those of its handler is not in its span", async () => {
  const earlier = sdk.spans().length;
  const calls: (() => void)[] = [];
  const receiver = createReceiver({
    payments: { publicKey },
    inbox: memoryInbox(),
    logger: silent,
    run: "background",
    instrumentation: otel(),
  });
  receiver
    .ignore("WITHDRAWAL")
    .onDeposit(() => new Promise<void>((resolve) => calls.push(resolve)), { concurrency: 1 });
  await receiver.start();
  for (const payTxnId of ["one", "two"]) {
    const sent = signPaymentCallback(callbackFields({ payTxnId, referenceId: payTxnId }), privateKey);
    await receiver.payments.receive(deliveryOf(sent), { mounted: true });
  }
  for (const at of [0, 1]) {
    await vi.waitFor(() => expect(calls.length).toBe(at + 1));
    // So the second event waits for much longer than a millisecond.
    await pause(20);
    calls[at]?.();
  }
  const called = () =>
    sdk
      .spans()
      .slice(earlier)
      .filter(({ name }) => name === "process payments");
  await vi.waitFor(() => expect(called()).toHaveLength(2));
  await receiver.close();
  const [first, second] = called();
  const at = ([seconds, nanoseconds]: readonly [number, number] = [0, 0]) => seconds * 1e9 + nanoseconds;
  // The start of a span is in whole milliseconds, and its end is not.
  expect(at(second?.startTime)).toBeGreaterThan(at(first?.endTime) - 1e6);
});

it("an instrumentation that throws changes nothing for the delivery and its handler", async () => {
  const fails = (): never => {
    throw new Error("out of order");
  };
  const broken = { trace: null, run: fails, end: fails };
  const nothing = (): never => undefined as never;
  const faults: readonly Instrumentation[] = [
    { attach: fails, onNotice: fails, observeDelivery: fails, observeHandler: fails, onEventEnd: fails },
    {
      attach: fails,
      onNotice: fails,
      observeDelivery: () => broken,
      observeHandler: () => broken,
      onEventEnd: fails,
    },
    { attach: fails, onNotice: fails, observeDelivery: nothing, observeHandler: nothing, onEventEnd: fails },
  ];
  for (const instrumentation of faults) {
    const { reply, ran } = await deliver({ instrumentation });
    expect([reply.status, ran]).toEqual([200, 1]);
  }
});

it("a kept text that is damaged, too long or of another version is ignored, and its record is read", () => {
  const record = acceptedRecord(keyOf(1), 1_000);
  const plain = encodeRecord(record);
  const texts = ["1-zz", "2-unknown", "x".repeat(101), 7, { a: 1 }, [], true];
  for (const kept of texts) {
    const [slotKey = "", slot] = Object.entries(record.slots)[0] ?? [];
    if (slot?.work == null) throw new Error("no work");
    const changed = {
      ...record,
      slots: { [slotKey]: { ...slot, work: { ...slot.work, trace: kept as string } } },
    };
    const read = decodeRecord(encodeRecord(changed));
    expect(read, JSON.stringify(kept)).not.toHaveProperty("unreadable");
  }
  expect(decodeRecord(plain)).toEqual(record);
});

it("an SDK may come later: until then nothing is observed, and events run", async () => {
  sdk.close();
  const instrumentation = otel();
  expect(instrumentation.observeDelivery({ flow: "payments", header: () => null })).toBeNull();
  const before = await deliver({ instrumentation });
  sdk = startMemorySdk();
  const after = await deliver({ instrumentation });
  expect([before, after].map(({ reply, ran }) => [reply.status, ran])).toEqual([
    [200, 1],
    [200, 1],
  ]);
  expect(before.spans).toEqual([]);
  expect(after.spans.map(({ name }) => name).sort()).toEqual(["accept payments", "process payments"]);
});
