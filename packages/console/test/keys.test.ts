import { createReceiver, memoryInbox } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { servedTo } from "./support/mounts.ts";

it("lists that keys have changed, and that they could not be read again, without a whole key", async () => {
  const clock = fakeClock();
  const keys = [createTestKeys(), createTestKeys()] as const;
  let read = async (): Promise<string> => keys[0].publicKey;
  const receiver = createReceiver({
    payments: { publicKey: { read: () => read(), everyMs: 1_000 } },
    inbox: memoryInbox({ clock }),
    clock,
    run: "elsewhere",
    logger: silent,
  });
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const { url, close } = await servedTo(receiver, ["view"]);
  onTestFinished(close);
  const deliver = async (privateKey: string): Promise<void> => {
    const { headers, rawBody } = signPaymentCallback(callbackFields({}, clock.now()), privateKey);
    const reply = await receiver.payments.receive({
      method: "POST",
      url: "/",
      headers: new Headers(headers),
      rawBody,
    });
    expect(reply.status).toBe(200);
  };
  await deliver(keys[0].privateKey);
  read = async () => keys[1].publicKey;
  await clock.advance(1_000);
  await deliver(keys[1].privateKey);
  read = () => Promise.reject(new Error("the vault is sealed"));
  await clock.advance(1_000);
  await deliver(keys[1].privateKey);
  await expect
    .poll(async () => (await (await fetch(url)).text()).replace(/<[^>]*>/g, ""))
    .toMatch(
      /keys-unreadable[\s\S]*ERR_KEY_UNREADABLE: Error[\s\S]*keys-changed[\s\S]*are others now: [0-9a-f]{16}\./,
    );
});
