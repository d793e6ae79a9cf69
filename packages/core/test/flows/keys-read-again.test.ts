import { createHmac } from "node:crypto";
import type { KeySource } from "@payhooks/core";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { hmac, source } from "@payhooks/core/sources";
import {
  anyCallbackFields,
  connectEvent,
  createTestKeys,
  fakeClock,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { deliveryOf, rejectedBy, SECRET, setUp, thrownBy } from "../receiving.ts";

const old = createTestKeys();
const next = createTestKeys();
const forger = createTestKeys();
const signed = (keys: typeof old, payTxnId: string) =>
  signPaymentCallback(anyCallbackFields({ payTxnId, referenceId: payTxnId }), keys.privateKey);

/** A key that the test changes, as a file or a secrets manager would be changed. */
async function keyThatChanges() {
  const clock = fakeClock();
  const stored = { keys: [old.publicKey] as string[], reads: 0, fails: null as Error | null };
  const publicKey: KeySource<string> = {
    async read() {
      stored.reads++;
      if (stored.fails !== null) throw stored.fails;
      return [...stored.keys];
    },
  };
  const t = await setUp({ payments: { publicKey } }, clock);
  const status = async (keys: typeof old, id: string) => (await t.post("payments", signed(keys, id))).status;
  const unreadable = () => t.notices.flatMap((notice) => (notice.type === "keys-unreadable" ? [notice] : []));
  return { t, clock, stored, status, unreadable };
}

describe("keys that are read again", () => {
  it("a new key is accepted at once, without a restart, and a notice names its fingerprint", async () => {
    const { t, stored, status } = await keyThatChanges();
    expect(await status(old, "t-1")).toBe(200);
    stored.keys = [old.publicKey, next.publicKey];
    expect(await status(next, "t-2")).toBe(200);
    expect(await status(old, "t-3")).toBe(200);
    expect(stored.reads).toBe(2);
    expect(t.ran).toHaveLength(3);
    const changed = t.notices.flatMap((notice) => (notice.type === "keys-changed" ? [notice] : []));
    expect(changed).toMatchObject([{ option: "payments.publicKey" }]);
    expect(changed[0]?.keyIds).toHaveLength(2);
  });

  it("an old key is refused once the keys are older than everyMs, even if nothing has arrived in between", async () => {
    const { t, clock, stored, status } = await keyThatChanges();
    stored.keys = [next.publicKey];
    expect(await status(old, "t-1")).toBe(200);
    await clock.advance("2m");
    expect(await status(old, "t-2")).toBe(401);
    expect(await status(next, "t-3")).toBe(200);
    expect(t.ran).toHaveLength(2);
  });

  it("deliveries with forged signatures let the keys be read once in 5 s, and none of them is accepted", async () => {
    const { t, clock, stored, status } = await keyThatChanges();
    for (let second = 0; second < 10; second++) {
      const forged = Array.from({ length: 20 }, (_, i) => status(forger, `f-${second}-${i}`));
      expect(new Set(await Promise.all(forged))).toEqual(new Set([401]));
      await clock.advance("1s");
    }
    // Once at the start, and then in the seconds 0 and 5.
    expect(stored.reads).toBe(3);
    expect(t.ran).toEqual([]);
  });

  it("while the source of keys fails, the last good keys are used, and a notice with a code says so", async () => {
    const { t, clock, stored, status, unreadable } = await keyThatChanges();
    stored.fails = new Error("secret-manager.example/v1?token=abc");
    await clock.advance("2m");
    expect(await status(old, "t-1")).toBe(200);
    expect(unreadable()).toMatchObject([{ option: "payments.publicKey", code: "ERR_KEY_UNREADABLE" }]);
    expect(JSON.stringify([unreadable(), t.lines])).not.toContain("token=abc");
    expect(await status(forger, "t-2")).toBe(401);
    // It is not asked again before 5 s.
    expect(stored.reads).toBe(2);
    stored.fails = null;
    stored.keys = [next.publicKey];
    await clock.advance("5s");
    expect([await status(next, "t-3"), await status(old, "t-4")]).toEqual([200, 401]);
  });

  it.each([
    ["a private key", old.privateKey, "ERR_KEY_PRIVATE"],
    ["a file that is empty while it is written", "", "ERR_OPTION_MISSING"],
  ])("each key that is read is checked: %s changes nothing", async (_, text, code) => {
    const { clock, stored, status, unreadable } = await keyThatChanges();
    stored.keys = [text];
    await clock.advance("2m");
    expect(await status(old, "t-1")).toBe(200);
    expect(unreadable()).toMatchObject([{ code }]);
  });

  it("a source that hangs delays a delivery by half of its time, and the last good keys are used", async () => {
    const clock = fakeClock();
    const signals: AbortSignal[] = [];
    const read: KeySource<string>["read"] = ({ signal }) => {
      signals.push(signal);
      return signals.length === 1 ? old.publicKey : new Promise(() => {});
    };
    const t = await setUp({ payments: { publicKey: { read } } }, clock);
    await clock.advance("2m");
    const reply = t.post("payments", signed(old, "t-1"));
    await clock.advance("1s");
    expect((await reply).status).toBe(200);
    expect(signals[1]?.aborted).toBe(true);
  });

  it("a busy receiver reads the keys ahead of time, so that no delivery waits", async () => {
    const { clock, stored, status } = await keyThatChanges();
    await clock.advance("31s");
    expect(await status(old, "t-1")).toBe(200);
    expect(stored.reads).toBe(2);
    await clock.advance("20s");
    expect(await status(old, "t-2")).toBe(200);
    expect(stored.reads).toBe(2);
  });

  it("secrets of webhooks are read again too", async () => {
    let secret = SECRET;
    const t = await setUp({ connect: { secret: { read: () => secret } } });
    const status = async (by: string) =>
      (await t.post("connect", signConnectWebhook(connectEvent(), by))).status;
    expect(await status(SECRET)).toBe(200);
    secret = "whsec_test_fedcba9876543210";
    expect([await status(secret), await status(SECRET)]).toEqual([200, 400]);
  });

  it("keys of a source are read again too", async () => {
    let secret = SECRET;
    const verify = hmac({ secret: { read: () => secret }, header: "x-signature" });
    const shop = source({ verify, read: ({ body }) => ({ name: body.type, id: body.id, data: body }) });
    const receiver = createReceiver({ sources: { shop }, inbox: memoryInbox(), run: "elsewhere" });
    await receiver.start();
    const rawBody = Buffer.from('{"type":"paid","id":"1"}');
    const status = async (by: string) => {
      const signature = createHmac("sha256", by).update(rawBody).digest("hex");
      return (
        await receiver.sources.shop.receive(deliveryOf({ rawBody, headers: { "x-signature": signature } }))
      ).status;
    };
    expect(await status(SECRET)).toBe(200);
    secret = "whsec_test_fedcba9876543210";
    expect([await status(secret), await status(SECRET)]).toEqual([200, 401]);
    await receiver.close();
  });

  it("a start without readable keys fails with a code, and the next one works", async () => {
    let isDown = true;
    const read = (): string => {
      if (isDown) throw new Error("down");
      return old.publicKey;
    };
    const receiver = createReceiver({ payments: { publicKey: { read } }, run: "elsewhere" });
    expect((await rejectedBy(receiver.start())).code).toBe("ERR_KEY_UNREADABLE");
    isDown = false;
    await receiver.start();
    await receiver.close();
  });

  it("everyMs has to be at least a second", () => {
    const publicKey = { read: () => old.publicKey, everyMs: 10 };
    expect(thrownBy(() => createReceiver({ payments: { publicKey } })).code).toBe("ERR_OPTION_INVALID");
  });
});
