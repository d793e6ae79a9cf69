import { createReceiver, memoryInbox, type Notice, type Receiver } from "@payhooks/core";
import { connectWebhooks, paymentCallbacks, webhooks } from "@payhooks/core/fetch";
import { source, unsafeUnsigned } from "@payhooks/core/sources";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";

const keys = createTestKeys();
const url = "https://merchant.example/callbacks/pay";

function start(limits: { readonly bodyTimeoutMs?: number; readonly maxBodyBytes?: number } = {}): {
  readonly receiver: Receiver;
  readonly notices: Notice[];
} {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: memoryInbox(),
    logger: silent,
    limits,
  });
  const notices: Notice[] = [];
  receiver.onDeposit(async () => {}).observe((notice) => notices.push(notice));
  return { receiver, notices };
}

function post(
  body: RequestInit["body"] = Buffer.from(signPaymentCallback(callbackFields(), keys.privateKey).rawBody),
): Request {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body, duplex: "half" };
  return new Request(url, init as RequestInit);
}

const textOf = async (response: Response): Promise<string> => `${response.status} ${await response.text()}`;

it("a fetch handler answers a genuine callback, and a copy, whatever the platform", async () => {
  const { receiver, notices } = start();
  const handler = paymentCallbacks(receiver);
  const delivery = post();
  const copy = delivery.clone();
  expect(await textOf(await handler(delivery))).toBe('200 {"received":true}');
  expect(await textOf(await handler(copy))).toBe('200 {"received":true}');
  await receiver.close();
  expect(notices.filter(({ type }) => type === "finished")).toHaveLength(1);
});

it("a fetch handler makes a receiver once, with the first request's platform, for all mounts that share the factory", async () => {
  const made: string[] = [];
  const { receiver } = start();
  const factory = (platform: string): Receiver => {
    made.push(platform);
    if (made.length === 1) throw new Error("no secrets yet");
    return receiver;
  };
  const [first, second] = [paymentCallbacks(factory), paymentCallbacks(factory)];
  await expect(first(post(), "a")).rejects.toThrow("no secrets yet");
  expect((await first(post(), "b")).status).toBe(200);
  expect((await second(post(), "c")).status).toBe(200);
  expect(made).toEqual(["a", "b"]);
  await receiver.close();
});

it("a fetch handler throws at the mounting when the flow is off", () => {
  expect(() => connectWebhooks(start().receiver)).toThrow(expect.objectContaining({ code: "ERR_FLOW_OFF" }));
});

it("a fetch handler answers 500 to a body that was read, or is being read, by somebody else", async () => {
  const handler = paymentCallbacks(start().receiver);
  const read = post();
  await read.json();
  expect(await textOf(await handler(read))).toBe('500 {"error":{"code":"ERR_BODY_CONSUMED"}}');
  const locked = post();
  locked.body?.getReader();
  expect(await textOf(await handler(locked))).toBe('500 {"error":{"code":"ERR_BODY_CONSUMED"}}');
});

it.each([
  ["is too long", { maxBodyBytes: 10 }, '413 {"error":{"code":"ERR_BODY_TOO_LARGE"}}'],
  ["takes too long", { bodyTimeoutMs: 20, maxBodyBytes: 1_000 }, '408 {"error":{"code":"ERR_BODY_TIMEOUT"}}'],
])("refuses a body that %s, and reads no more of it", async (_how, options, answer) => {
  let cancelled = (): void => {};
  const isCancelled = new Promise<void>((resolve) => {
    cancelled = resolve;
  });
  const body = new ReadableStream({
    start: (stream) => stream.enqueue(Buffer.from('{"event":"DEPOSIT"')),
    cancel: () => cancelled(),
  });
  expect(await textOf(await paymentCallbacks(start(options).receiver)(post(body)))).toBe(answer);
  await isCancelled;
});

it("a fetch handler refuses a body that breaks off", async () => {
  const body = new ReadableStream({ start: (stream) => stream.error(new Error("reset")) });
  const answer = await paymentCallbacks(start().receiver)(post(body));
  expect(await textOf(answer)).toBe('400 {"error":{"code":"ERR_BODY_INCOMPLETE"}}');
});

it("a fetch handler takes no body for an empty one", async () => {
  expect(await textOf(await paymentCallbacks(start().receiver)(post(null)))).toBe(
    '400 {"error":{"code":"ERR_BODY_NOT_JSON"}}',
  );
});

it("a fetch handler answers a source whose answer has no body", async () => {
  const bank = source({
    verify: unsafeUnsigned({ because: "a test of answers" }),
    read: ({ body }) => ({ id: body.id, name: "paid", data: body }),
    answer: { accepted: { status: 204 } },
  });
  const receiver = createReceiver({ sources: { bank }, inbox: memoryInbox(), logger: silent });
  receiver.on("bank", "*", () => {});
  const answer = await webhooks(receiver, "bank")(post('{"id":"1"}'));
  expect([answer.status, answer.body]).toEqual([204, null]);
  await receiver.close();
});
