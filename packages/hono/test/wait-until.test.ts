/** The receiver's work after an answer is handed to the platform of each request, if that request has one. */
import { createReceiver, memoryInbox } from "@payhooks/core";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { paymentCallbacks } from "@payhooks/hono";
import { Hono } from "hono";
import { expect, it } from "vitest";
import { silent } from "../../../test/support/silent.ts";

const keys = createTestKeys();

it("waitUntil is used by each request that has one, also after one that has none", async () => {
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: memoryInbox(),
    logger: silent,
    run: "after-response",
  });
  receiver.onDeposit(() => {}).ignore("WITHDRAWAL");
  const app = new Hono().all(
    "/pay",
    paymentCallbacks(() => receiver),
  );
  const given: Promise<unknown>[] = [];
  const platform = {
    waitUntil: (work: Promise<unknown>) => void given.push(work),
    passThroughOnException() {},
    props: {},
  };
  const send = async (...context: readonly (typeof platform)[]): Promise<number> => {
    const { rawBody, headers } = signPaymentCallback(callbackFields(), keys.privateKey);
    const request = new Request("http://shop.example/pay", {
      method: "POST",
      headers,
      body: Buffer.from(rawBody),
    });
    return (await app.fetch(request, {}, ...context)).status;
  };
  expect(await send()).toBe(200);
  expect(given).toEqual([]);
  expect(await send(platform)).toBe(200);
  expect(given.length).toBeGreaterThan(0);
  await Promise.all(given);
  await receiver.close({ graceMs: 0 });
});
