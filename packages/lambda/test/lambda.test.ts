import { createReceiver, memoryInbox, PayhooksError, type ReceiverOptions, Reject } from "@payhooks/core";
import {
  anyConnectEvent,
  callbackFields,
  createTestKeys,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import type {
  ALBHandler,
  APIGatewayProxyHandler,
  APIGatewayProxyHandlerV2,
  LambdaFunctionURLHandler,
  SQSHandler,
} from "aws-lambda";
import { describe, expect, it, vi } from "vitest";
import {
  connectWebhooks,
  type HttpEvent,
  type HttpFunction,
  paymentCallbacks,
  ready,
  runQueue,
} from "../src/index.ts";

const KEYS = createTestKeys();
const silent = { info() {}, warn() {}, error() {} };

function newReceiver(options: Partial<ReceiverOptions> = {}) {
  return createReceiver({
    payments: { publicKey: KEYS.publicKey },
    inbox: memoryInbox(),
    ack: "handled",
    logger: silent,
    ...options,
  });
}

/** A genuine delivery with text beyond ASCII. */
const signed = (fields: Parameters<typeof callbackFields>[0] = {}) =>
  signPaymentCallback(callbackFields({ message: "Grüße", ...fields }), KEYS.privateKey);

/** The events that the documentation of AWS shows, with the given request in them. */
const SHAPES: Readonly<Record<string, (text: string, isBase64Encoded: boolean) => HttpEvent>> = {
  "an API Gateway, format 1.0": (body, isBase64Encoded) => ({
    version: "1.0",
    resource: "/callbacks/pay",
    path: "/callbacks/pay",
    httpMethod: "POST",
    headers: { "Content-Type": "application/json", "X-Forwarded-For": "192.0.2.7" },
    multiValueHeaders: { "Content-Type": ["application/json"], "X-Forwarded-For": ["192.0.2.7"] },
    queryStringParameters: { a: "1 2" },
    multiValueQueryStringParameters: { a: ["0", "1 2"] },
    requestContext: { httpMethod: "POST", path: "/callbacks/pay", identity: { sourceIp: "192.0.2.1" } },
    pathParameters: null,
    stageVariables: null,
    body,
    isBase64Encoded,
  }),
  "an API Gateway, format 2.0": (body, isBase64Encoded) => ({
    version: "2.0",
    routeKey: "POST /callbacks/pay",
    rawPath: "/callbacks/pay",
    rawQueryString: "a=0&a=1%202",
    headers: {
      "content-type": "application/json",
      "content-length": String(lengthOf(body, isBase64Encoded)),
    },
    queryStringParameters: { a: "0,1 2" },
    requestContext: {
      http: { method: "POST", path: "/callbacks/pay", sourceIp: "192.0.2.1" },
      stage: "$default",
    },
    body,
    isBase64Encoded,
  }),
  "a load balancer": (body, isBase64Encoded) => ({
    requestContext: {
      elb: { targetGroupArn: "arn:aws:elasticloadbalancing:region:123456789012:targetgroup/t/6d0e" },
    },
    httpMethod: "POST",
    path: "/callbacks/pay",
    queryStringParameters: { a: "1%202" },
    headers: { "content-type": "application/json", "x-forwarded-for": "203.0.113.9, 192.0.2.1" },
    body,
    isBase64Encoded,
  }),
  "a load balancer with multi-value headers": (body, isBase64Encoded) => ({
    requestContext: {
      elb: { targetGroupArn: "arn:aws:elasticloadbalancing:region:123456789012:targetgroup/t/6d0e" },
    },
    httpMethod: "POST",
    path: "/callbacks/pay",
    multiValueQueryStringParameters: { a: ["0", "1%202"] },
    multiValueHeaders: {
      "content-type": ["application/json"],
      "x-forwarded-for": ["203.0.113.9, 192.0.2.1"],
    },
    body,
    isBase64Encoded,
  }),
};

function lengthOf(body: string, isBase64Encoded: boolean): number {
  return Buffer.from(body, isBase64Encoded ? "base64" : "utf8").byteLength;
}

describe.each(Object.entries(SHAPES))("an event of %s", (name, shape) => {
  const isMulti = name.startsWith("an API Gateway, format 1.0") || name.includes("multi-value");

  it("is received, as text and as base64, once", async () => {
    const ran: string[] = [];
    const handler = paymentCallbacks(newReceiver().onDeposit(({ payTxnId }) => void ran.push(payTxnId)));
    const { rawBody } = signed({ payTxnId: "t-1" });
    const answers = [
      await handler(shape(Buffer.from(rawBody).toString("utf8"), false)),
      await handler(shape(Buffer.from(rawBody).toString("base64"), true)),
    ];
    const headers = isMulti
      ? { multiValueHeaders: { "content-type": ["application/json"], "cache-control": ["no-store"] } }
      : { headers: { "content-type": "application/json", "cache-control": "no-store" } };
    const answer = { statusCode: 200, ...headers, body: '{"received":true}', isBase64Encoded: false };
    expect(answers).toEqual([answer, answer]);
    expect(ran).toEqual(["t-1"]);
  });

  it("that is forged is refused, and the notice has the peer's address", async () => {
    const refused: unknown[] = [];
    const receiver = newReceiver().onDeposit(() => {});
    receiver.observe((notice) => notice.type === "refused" && refused.push([notice.code, notice.address]));
    const { rawBody } = signed();
    const forged = Buffer.from(rawBody).toString("utf8").replace("Grüße", "Gruesse");
    const length = { "content-length": String(Buffer.byteLength(forged)) };
    const event = shape(forged, false);
    expect(
      (await paymentCallbacks(receiver)({ ...event, headers: { ...event.headers, ...length } })).statusCode,
    ).toBe(401);
    await expect.poll(() => refused).toEqual([["ERR_SIGNATURE_INVALID", "192.0.2.1"]]);
  });
});

it("a genuine signature in another header is found, in whatever case the gateway writes its name", async () => {
  const secret = "a-long-secret-of-the-merchant";
  const reasons: string[] = [];
  const receiver = createReceiver({
    connect: { secret },
    inbox: memoryInbox(),
    ack: "handled",
    logger: silent,
  });
  receiver.onSettlementApproved(() => {});
  receiver.observe((notice) => notice.type === "refused" && reasons.push(notice.why));
  const { rawBody, headers } = signConnectWebhook(anyConnectEvent("settlement.approved"), secret);
  const signature = new Headers(headers).get("x-connect-signature") ?? "";
  const [, shape] = Object.entries(SHAPES)[0] ?? expect.fail();
  const event = shape(Buffer.from(rawBody).toString("base64"), true);
  const { multiValueHeaders } = event as { multiValueHeaders: Record<string, string[]> };
  const answer = await connectWebhooks(receiver)({
    ...event,
    multiValueHeaders: { ...multiValueHeaders, "X-Acme-Signature": [signature] },
  });
  expect(answer.statusCode).toBe(400);
  await expect.poll(() => reasons.join()).toContain("the signature in x-acme-signature is genuine");
});

describe("a body that the gateway has made text of", () => {
  it("is never accepted if it was not UTF-8: its length shows it, or its signature", async () => {
    const handler = paymentCallbacks(newReceiver().onDeposit(() => {}));
    const { rawBody } = signed();
    const [before, after] = Buffer.from(rawBody).toString("latin1").split("GrÃ¼Ã\x9fe");
    const broken = Buffer.from(`${before}Gr\xfc${after}`, "latin1");
    const make = SHAPES["an API Gateway, format 2.0"];
    const event = make?.(broken.toString("utf8"), false) ?? {};
    const sent = { ...event, headers: { ...event.headers, "content-length": String(broken.byteLength) } };
    expect(await handler(sent)).toMatchObject({
      statusCode: 500,
      body: '{"error":{"code":"ERR_BODY_CONSUMED"}}',
    });
    const { "content-length": _, ...headers } = event.headers ?? {};
    expect((await handler({ ...event, headers })).statusCode).toBe(401);
  });
});

describe("on Lambda nothing runs after the answer", () => {
  it.each([{ ack: "enqueued" }, { run: "background" }, { ack: "enqueued", run: "after-response" }] as const)(
    "a receiver with %j is refused, with the fix",
    (options) => {
      const mount = () => paymentCallbacks(newReceiver(options));
      expect(mount).toThrow(PayhooksError);
      expect(mount).toThrow(
        expect.objectContaining({ code: "ERR_OPTION_INVALID", fix: expect.stringContaining("runQueue") }),
      );
    },
  );

  it("a receiver with such options that a factory makes answers 500", async () => {
    const handler = paymentCallbacks(() => newReceiver({ ack: "enqueued" }));
    const event = SHAPES["a load balancer"]?.("{}", false) ?? {};
    await expect(handler(event)).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
  });

  it("a hint is on its way before the answer is returned", async () => {
    const queue: string[] = [];
    const notifyWorker = async (eventId: string) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      queue.push(eventId);
    };
    const accepting = newReceiver({ ack: "enqueued", run: "elsewhere", notifyWorker });
    const { rawBody } = signed();
    const event = SHAPES["a load balancer"]?.(Buffer.from(rawBody).toString("utf8"), false) ?? {};
    expect((await paymentCallbacks(accepting)(event)).statusCode).toBe(200);
    expect(queue).toEqual([expect.stringMatching(/^[0-9a-f]{48}$/)]);
  });
});

describe("a queue", () => {
  const batchOf = (bodies: readonly string[]) => ({
    Records: bodies.map((body, n) => ({ messageId: `m-${n}`, body })),
  });

  it("names events, which are run, and gets back those that are not done yet", async () => {
    const inbox = memoryInbox();
    const hints: string[] = [];
    const notifyWorker = (eventId: string) => void hints.push(eventId);
    const accept = paymentCallbacks(newReceiver({ inbox, ack: "enqueued", run: "elsewhere", notifyWorker }));
    const ran: string[] = [];
    let isAway = true;
    const working = newReceiver({ inbox }).onDeposit(({ payTxnId }) => {
      ran.push(payTxnId);
      if (payTxnId === "fails" && isAway) throw new Error("the bank is away");
      if (payTxnId === "rejected") throw new Reject("not ours");
    });
    for (const payTxnId of ["good", "fails", "rejected"]) {
      const { rawBody } = signed({ payTxnId });
      await accept(SHAPES["a load balancer"]?.(Buffer.from(rawBody).toString("utf8"), false) ?? {});
    }
    const work = runQueue(working);
    const told = vi.spyOn(console, "error").mockImplementation(() => {});
    const first = await work(batchOf([...hints, "no eventId"]));
    expect(first).toEqual({ batchItemFailures: [{ itemIdentifier: "m-1" }, { itemIdentifier: "m-3" }] });
    expect(told.mock.calls).toEqual([[expect.stringContaining("Not an eventId")]]);
    told.mockRestore();
    isAway = false;
    await expect.poll(() => work(batchOf(hints)), { interval: 300 }).toEqual({ batchItemFailures: [] });
    expect(ran.filter((one) => one !== "fails")).toEqual(["good", "rejected"]);
  });

  it("that names two events of one transaction in a batch has both done", async () => {
    const inbox = memoryInbox();
    const hints: string[] = [];
    const notifyWorker = (eventId: string) => void hints.push(eventId);
    const accept = paymentCallbacks(newReceiver({ inbox, ack: "enqueued", run: "elsewhere", notifyWorker }));
    const ran: string[] = [];
    const working = newReceiver({ inbox }).onDeposit({
      PENDING: () => void ran.push("PENDING"),
      SUCCESS: () => void ran.push("SUCCESS"),
    });
    for (const status of ["PENDING", "SUCCESS"] as const) {
      const { rawBody } = signed({ payTxnId: "twice", referenceId: "o-1", status });
      await accept(SHAPES["a load balancer"]?.(Buffer.from(rawBody).toString("utf8"), false) ?? {});
    }
    expect(await runQueue(working)(batchOf(hints))).toEqual({ batchItemFailures: [] });
    expect(ran).toEqual(["SUCCESS"]);
  });

  it("that names an event which no longer exists counts as done", async () => {
    const work = runQueue(newReceiver().onDeposit(() => {}));
    expect(await work(batchOf(["0".repeat(48)]))).toEqual({ batchItemFailures: [] });
  });
});

it("the functions are what AWS's own types ask for", async () => {
  const receiver = newReceiver().onDeposit(() => {});
  const pay: HttpFunction = paymentCallbacks(receiver);
  const typed: [APIGatewayProxyHandler, APIGatewayProxyHandlerV2, LambdaFunctionURLHandler, ALBHandler] = [
    pay,
    pay,
    pay,
    pay,
  ];
  const worker: SQSHandler = runQueue(receiver);
  expect([...typed, worker].map((one) => one.length)).toEqual([1, 1, 1, 1, 1]);
  expect((await ready(receiver)({})).body).toMatch(/^\{"ok":/);
});
