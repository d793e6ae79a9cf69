import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { manualClock } from "./support/manual-clock.ts";
import { call, receiver, SETTINGS_PATH, settings, start } from "./support/start.ts";

const secret = "whsec_0123456789abcdef";
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("the webhook settings", () => {
  it("are off and empty from the start, and a GET returns what was PUT", async () => {
    const sandbox = await start();
    const none = { webhook_url: null, webhook_secret: null, webhook_enabled: false };
    expect(await settings(sandbox, "GET")).toMatchObject({
      status: 200,
      body: { success: true, data: none },
    });
    const wanted = { webhook_url: "https://m.example/hooks", webhook_secret: secret, webhook_enabled: true };
    expect(await settings(sandbox, "PUT", wanted)).toMatchObject({
      status: 200,
      body: { success: true, data: wanted },
    });
    expect((await settings(sandbox, "GET")).body.data).toEqual(wanted);
    expect(sandbox.settings.get()).toEqual(wanted);
  });

  it("are replaced as a whole: a secret that is left out or empty is gone", async () => {
    const sandbox = await start();
    const wanted = { webhook_url: "https://m.example/hooks", webhook_enabled: true };
    for (const webhook_secret of [undefined, null, ""]) {
      await settings(sandbox, "PUT", { ...wanted, webhook_secret: secret });
      await settings(sandbox, "PUT", { ...wanted, webhook_secret });
      expect(sandbox.settings.get().webhook_secret).toBe(null);
    }
  });

  it.each([
    ["webhook_enabled", { webhook_enabled: undefined }, "is required"],
    ["webhook_enabled", { webhook_enabled: "yes" }, "true or false"],
    ["webhook_url", { webhook_url: undefined }, "is required"],
    ["webhook_url", { webhook_url: "http://m.example" }, "must use HTTPS"],
    ["webhook_url", { webhook_url: 7 }, "must be a string"],
    ["webhook_secret", { webhook_secret: 7 }, "must be a string"],
    ["webhook_secret", { webhook_secret: " " }, "must not be blank"],
  ])("refuse a wrong %s with 400: %j", async (field, changes, message) => {
    const sandbox = await start();
    const right = { webhook_url: "https://m.example/hooks", webhook_secret: secret, webhook_enabled: true };
    const answer = await settings(sandbox, "PUT", { ...right, ...changes });
    expect(answer.status).toBe(400);
    expect(answer.body.data.errors).toEqual([{ field, message: expect.stringContaining(message) }]);
    expect(sandbox.settings.get().webhook_enabled).toBe(false);
  });

  it("know no other method", async () => {
    const sandbox = await start();
    const headers = { "X-API-Key": sandbox.keys.connectApiKey };
    expect((await call(sandbox, "POST", SETTINGS_PATH, {}, headers)).status).toBe(404);
  });
});

describe("a connected-account webhook", () => {
  const configured = async (changes: object = {}) => {
    const merchant = await receiver();
    const sandbox = await start();
    sandbox.settings.set({
      webhook_url: merchant.url,
      webhook_secret: secret,
      webhook_enabled: true,
      ...changes,
    });
    return { merchant, sandbox };
  };

  it.each(["approved", "declined"] as const)(
    "tells that KYC was %s, signed over its bytes",
    async (decision) => {
      const { merchant, sandbox } = await configured();
      const account = sandbox.accounts.create();
      expect(account).toEqual({
        object: "connected_account",
        id: expect.stringMatching(/^cm_[0-9a-f-]{36}$/),
        master_merchant_id: sandbox.keys.masterMerchantId,
        kyc_status: "pending",
      });
      sandbox.accounts.decide(account.id, decision);
      await sandbox.deliveries.waitFor({ flow: "connect", state: "delivered" });
      const [request] = merchant.received;
      expect(request?.method).toBe("POST");
      expect(request?.headers["content-type"]).toBe("application/json");
      const digest = createHmac("sha256", secret)
        .update(request?.body ?? "")
        .digest("hex");
      expect(request?.headers["x-connect-signature"]).toBe(`sha256=${digest}`);
      expect(JSON.parse(request?.body ?? "")).toEqual({
        event: `connected_account.${decision}`,
        idempotency_key: expect.stringMatching(/^evt_[0-9a-f-]{36}$/),
        occurred_at: expect.stringMatching(ISO),
        data: { ...account, kyc_status: decision },
      });
      expect(sandbox.keys.masterMerchantId).toMatch(/^mm_[0-9a-f-]{36}$/);
    },
  );

  it.each(["approved", "declined"] as const)("tells that a settlement was %s", async (decision) => {
    const { merchant, sandbox } = await configured();
    const settlement = sandbox.settlements.create({ amount: 125_000 });
    sandbox.settlements.decide(settlement.id, decision);
    await sandbox.deliveries.waitFor({ flow: "connect", state: "delivered" });
    expect(JSON.parse(merchant.received[0]?.body ?? "")).toMatchObject({
      event: `settlement.${decision}`,
      data: {
        object: "settlement",
        id: expect.stringMatching(/^wd_/),
        connected_account_id: expect.stringMatching(/^cm_/),
        amount: 125_000,
        status: decision,
      },
    });
  });

  it("carries no signature header where no secret is set", async () => {
    const { merchant, sandbox } = await configured({ webhook_secret: null });
    sandbox.accounts.decide(sandbox.accounts.create().id, "approved");
    await sandbox.deliveries.waitFor({ state: "delivered" });
    expect(merchant.received[0]?.headers).not.toHaveProperty("x-connect-signature");
  });

  it.each([null, ""])("carries none for a secret of %j in the options", async (webhook_secret) => {
    const merchant = await receiver();
    const settings = { webhook_url: merchant.url, webhook_secret, webhook_enabled: true };
    const sandbox = await start({ settings });
    expect(sandbox.settings.get().webhook_secret).toBe(null);
    sandbox.accounts.decide(sandbox.accounts.create().id, "approved");
    await sandbox.deliveries.waitFor({ state: "delivered" });
    expect(merchant.received[0]?.headers).not.toHaveProperty("x-connect-signature");
  });

  it("is not sent while webhooks are off, whatever callbacks do, and the reverse", async () => {
    const { merchant, sandbox } = await configured({ webhook_enabled: false });
    sandbox.accounts.decide(sandbox.accounts.create().id, "approved");
    sandbox.deposit({ callback_url: merchant.url });
    await sandbox.deliveries.waitFor({ state: "delivered" });
    expect(sandbox.deliveries.list().map(({ flow }) => flow)).toEqual(["payments"]);
  });

  it("keeps its idempotency key over retries and replays; a second decision has another", async () => {
    const { merchant, sandbox } = await configured();
    const account = sandbox.accounts.create();
    merchant.answerWith(503);
    sandbox.accounts.decide(account.id, "approved");
    const retrying = await sandbox.deliveries.waitFor({ state: "retrying" });
    sandbox.deliveries.replay(retrying.id);
    sandbox.deliveries.replay(retrying.id, { resign: true });
    sandbox.accounts.decide(account.id, "approved");
    await expect.poll(() => merchant.received).toHaveLength(4);
    const keys = merchant.received.map(({ body }) => JSON.parse(body).idempotency_key);
    expect(new Set(keys).size).toBe(2);
  });

  it("has a new date where it is signed anew, by a replay or a retry, and else the old one", async () => {
    const merchant = await receiver();
    merchant.answerWith(503);
    const clock = manualClock(Date.parse("2026-03-01T12:00:00.000Z"));
    const settings = { webhook_url: merchant.url, webhook_secret: secret, webhook_enabled: true };
    const sandbox = await start({ clock, settings, signRetries: "anew", retry: { jitter: 0 } });
    sandbox.accounts.decide(sandbox.accounts.create().id, "approved");
    await sandbox.deliveries.idle();
    await clock.advance(1_000, sandbox);
    const { id = "" } = sandbox.deliveries.list()[0] ?? {};
    await clock.advance(60_000, sandbox);
    sandbox.deliveries.replay(id, { resign: true });
    await sandbox.deliveries.idle();
    sandbox.deliveries.replay(id);
    await sandbox.deliveries.idle();
    const sent = merchant.received.map(({ body }) => JSON.parse(body));
    const time = (text: string) => `2026-03-01T12:${text}.000Z`;
    expect(sent.map(({ occurred_at }) => occurred_at)).toEqual([
      time("00:00"),
      time("00:01"),
      time("01:01"),
      time("00:00"),
    ]);
    expect(new Set(sent.map(({ idempotency_key }) => idempotency_key)).size).toBe(1);
    for (const { body, headers } of merchant.received) {
      const digest = createHmac("sha256", secret).update(body).digest("hex");
      expect(headers["x-connect-signature"]).toBe(`sha256=${digest}`);
    }
  });

  it("cannot be had for what does not exist", async () => {
    const sandbox = await start();
    expect(() => sandbox.accounts.decide("cm_x", "approved")).toThrow(/no connected account cm_x/);
    expect(() => sandbox.settlements.decide("wd_x", "approved")).toThrow(/no settlement wd_x/);
    expect(() => sandbox.settlements.create({ amount: 1, accountId: "cm_x" })).toThrow(
      /no connected account cm_x/,
    );
    expect(() => sandbox.settlements.create({ amount: 1.5 })).toThrow(/whole number/);
  });
});
