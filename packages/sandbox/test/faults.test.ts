import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { FAULT_KINDS, type FaultRule, type SandboxOptions } from "../src/index.ts";
import { manualClock } from "./support/manual-clock.ts";
import { type Callback, canonical, verifies } from "./support/signature.ts";
import { call, pay, payment, receiver, start } from "./support/start.ts";

const quick: SandboxOptions = { retry: { baseMs: 1, maxMs: 1, jitter: 0 } };

/** One deposit that the fault happens to, and what the merchant got. */
async function broken(rule: FaultRule, options: SandboxOptions = quick) {
  const merchant = await receiver();
  const sandbox = await start({ callbackUrl: merchant.url, ...options });
  sandbox.faults.add(rule);
  sandbox.deposit({ reference: "order-1" });
  const delivery = await sandbox.deliveries.waitFor({ reference: "order-1", state: "delivered" });
  const callbacks = merchant.received.map(({ body }): Callback => JSON.parse(body));
  return {
    merchant,
    sandbox,
    delivery,
    callbacks,
    valid: callbacks.map((one) => verifies(one, sandbox.keys.publicKey)),
  };
}

describe("a fault of deliveries", () => {
  it("duplicate: the same bytes arrive twice, and both are in the log", async () => {
    const { merchant, delivery } = await broken({ kind: "duplicate" });
    expect(merchant.received.map(({ body }) => body)).toEqual([
      delivery.attempts[0]?.body,
      delivery.attempts[1]?.body,
    ]);
    expect(merchant.received[0]?.body).toBe(merchant.received[1]?.body);
    expect(delivery.attempts.map(({ number, faults }) => [number, faults])).toEqual([
      [1, ["duplicate"]],
      [2, ["duplicate"]],
    ]);
  });

  it("drop-answer: delivered, but counted as failed and sent again", async () => {
    const { delivery, callbacks } = await broken({ kind: "drop-answer" });
    expect(callbacks).toHaveLength(2);
    expect(delivery.attempts[0]).toMatchObject({
      answer: { status: 200 },
      acknowledged: false,
      error: expect.stringContaining("dropped"),
    });
  });

  it("bad-signature: right in form, wrong in value; a refusal brings the genuine one", async () => {
    const merchant = await receiver();
    merchant.answerWith(401);
    const sandbox = await start({ callbackUrl: merchant.url, ...quick });
    sandbox.faults.add("bad-signature");
    sandbox.deposit();
    await sandbox.deliveries.waitFor({ state: "delivered" });
    const callbacks = merchant.received.map(({ body }): Callback => JSON.parse(body));
    expect(callbacks.map((one) => verifies(one, sandbox.keys.publicKey))).toEqual([false, true]);
    expect(callbacks[0]?.signature).toMatch(/^[A-Za-z0-9+/]{342}==$/);
    expect(Number(merchant.received[0]?.headers["content-length"])).toBe(merchant.received[0]?.body.length);
  });

  it("wrong-key: signed well, by a stranger", async () => {
    const { callbacks, valid, delivery, sandbox } = await broken({ kind: "wrong-key" });
    expect(valid).toEqual([false]);
    expect(callbacks[0]?.signature).toMatch(/^[A-Za-z0-9+/]{342}==$/);
    expect(delivery.attempts[0]?.keyId).not.toBe(sandbox.keys.keyId);
  });

  it("stale-timestamp: dated back, signed properly", async () => {
    const { callbacks, valid } = await broken({ kind: "stale-timestamp", ageMs: 3_600_000 });
    expect(valid).toEqual([true]);
    const age = Date.now() - Date.parse(callbacks[0]?.timestamp ?? "");
    expect(age).toBeGreaterThanOrEqual(3_600_000);
    expect(age).toBeLessThan(3_660_000);
  });

  it("extra-field: an undocumented field under the signature", async () => {
    expect(await broken({ kind: "extra-field" })).toMatchObject({
      callbacks: [{ channel: "sandbox" }],
      valid: [true],
    });
    const field = { name: "tip", value: "1.00" };
    const { callbacks, valid } = await broken({ kind: "extra-field", field });
    expect(callbacks[0]?.tip).toBe("1.00");
    expect(valid).toEqual([true]);
  });

  it("reset: the connection ends in the middle of the body", async () => {
    const { merchant, delivery } = await broken({ kind: "reset" });
    expect(merchant.received).toHaveLength(1);
    expect(delivery.attempts).toMatchObject([
      {
        answer: null,
        acknowledged: false,
        error: expect.stringContaining("connection reset"),
        faults: ["reset"],
      },
      { answer: { status: 200 }, acknowledged: true, faults: [] },
    ]);
  });

  it("resplit: a SUCCESS cut out of a signed FAILED, which naive verification accepts", async () => {
    const { callbacks, valid, delivery } = await broken({ kind: "resplit" });
    expect(valid).toEqual([true]);
    expect(callbacks[0]).toMatchObject({ referenceId: "order-1", status: "SUCCESS" });
    expect(callbacks[0]?.userId).toContain("&status=FAILED&");
    const signed = delivery.attempts[0]?.canonicalString;
    expect(signed).toBe(canonical(callbacks[0] ?? {}));
    expect(signed).toContain("referenceId=order-1&status=SUCCESS&timestamp=");
  });

  it("resplit: the payment itself has failed, and its genuine callback comes when the forgery is refused", async () => {
    const merchant = await receiver();
    merchant.answerWith(401);
    const sandbox = await start({ callbackUrl: merchant.url, ...quick });
    sandbox.faults.add("resplit");
    const outcome = [
      { status: "PENDING", callback: false },
      { status: "SUCCESS" },
      { status: "PENDING" },
    ] as const;
    sandbox.deposit({ reference: "order-1", outcome });
    const delivery = await sandbox.deliveries.waitFor({ reference: "order-1", state: "delivered" });
    const record = sandbox.transactions.byReference("order-1");
    expect(record?.transaction).toMatchObject({ status: "FAILED", details: { Valid: false } });
    expect(record?.history.map(({ status }) => status)).toEqual(["PENDING", "PENDING", "FAILED"]);
    expect(record?.coming).toEqual([]);
    const callbacks = merchant.received.map(({ body }): Callback => JSON.parse(body));
    expect(callbacks).toMatchObject([
      { status: "SUCCESS", referenceId: "order-1" },
      { status: "FAILED", referenceId: "order-1", message: record?.transaction.message },
    ]);
    expect(callbacks.map((one) => verifies(one, sandbox.keys.publicKey))).toEqual([true, true]);
    expect(delivery).toMatchObject({ status: "FAILED", attempts: [{ faults: ["resplit"] }, { faults: [] }] });
  });

  it("resplit: sbx-forged is FAILED from the start, and announced as SUCCESS by the forgery alone", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url, ...quick });
    sandbox.deposit({ reference: "sbx-forged" });
    await sandbox.deliveries.waitFor({ reference: "sbx-forged", state: "delivered" });
    const history = sandbox.transactions.byReference("sbx-forged")?.history;
    expect(history?.map(({ status }) => status)).toEqual(["PENDING", "FAILED"]);
    expect(merchant.received.map(({ body }) => JSON.parse(body).status)).toEqual(["SUCCESS"]);
  });

  it("resplit: waits for a payment that nobody knows to have succeeded", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url, ...quick });
    const { id } = sandbox.deposit({ reference: "paid", outcome: "PENDING" }).transaction;
    sandbox.transactions.setStatus(id, "SUCCESS");
    const { id: delivered } = await sandbox.deliveries.waitFor({ reference: "paid", state: "delivered" });
    sandbox.faults.add("resplit");
    sandbox.deliveries.replay(delivered);
    sandbox.transactions.setStatus(id, "PENDING");
    sandbox.transactions.setStatus(id, "SUCCESS");
    await sandbox.deliveries.idle();
    expect(sandbox.faults.list()).toMatchObject([{ kind: "resplit", fired: 0 }]);
    expect(sandbox.transactions.get(id)?.transaction.status).toBe("SUCCESS");

    const other = sandbox.deposit({ reference: "other", outcome: "PENDING" }).transaction.id;
    expect(sandbox.transactions.setStatus(other, "SUCCESS").transaction.status).toBe("FAILED");
    expect(sandbox.faults.list()).toEqual([]);
  });

  it("delay: sent later", async () => {
    const merchant = await receiver();
    const clock = manualClock();
    const sandbox = await start({ clock, callbackUrl: merchant.url });
    sandbox.faults.add({ kind: "delay", delayMs: 5_000 });
    sandbox.deposit();
    await clock.advance(4_999, sandbox);
    expect(sandbox.deliveries.list()[0]?.attempts).toEqual([]);
    await clock.advance(1, sandbox);
    await sandbox.deliveries.waitFor({ state: "delivered" });
    expect(merchant.received).toHaveLength(1);
  });

  it("reorder: a later delivery overtakes it, or its time runs out", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    sandbox.faults.add({ kind: "reorder", reference: "first" });
    sandbox.deposit({ reference: "first" });
    await sandbox.deliveries.waitFor({ reference: "first" });
    sandbox.deposit({ reference: "second" });
    await sandbox.deliveries.waitFor({ reference: "first", state: "delivered" });
    expect(merchant.received.map(({ body }) => JSON.parse(body).referenceId)).toEqual(["second", "first"]);

    const clock = manualClock();
    const alone = await start({ clock, callbackUrl: merchant.url });
    alone.faults.add({ kind: "reorder", delayMs: 300 });
    alone.deposit({ reference: "alone" });
    await clock.advance(300, alone);
    await alone.deliveries.waitFor({ reference: "alone", state: "delivered" });
  });

  it.each(["bad-signature", "wrong-key"] as const)(
    "%s breaks webhooks too, when they are signed",
    async (kind) => {
      const merchant = await receiver();
      const sandbox = await start();
      const secret = "whsec_0123456789abcdef";
      const connect = { webhook_url: merchant.url, webhook_enabled: true };
      sandbox.faults.add(kind);
      sandbox.settings.set({ ...connect, webhook_secret: null });
      sandbox.accounts.decide(sandbox.accounts.create().id, "approved");
      await sandbox.deliveries.waitFor({ state: "delivered" });
      expect(sandbox.faults.list()).toHaveLength(1);
      sandbox.settings.set({ ...connect, webhook_secret: secret });
      sandbox.accounts.decide(sandbox.accounts.create().id, "declined");
      await sandbox.deliveries.waitFor({ event: "connected_account.declined", state: "delivered" });
      const sent = merchant.received[1];
      const digest = createHmac("sha256", secret)
        .update(sent?.body ?? "")
        .digest("hex");
      expect(sent?.headers["x-connect-signature"]).toMatch(/^sha256=[0-9a-f]{64}$/);
      expect(sent?.headers["x-connect-signature"]).not.toBe(`sha256=${digest}`);
    },
  );

  it("stale-timestamp and extra-field change webhooks under their signature", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    sandbox.settings.set({
      webhook_url: merchant.url,
      webhook_enabled: true,
      webhook_secret: "s3cr3t-s3cr3t-s3cr3t",
    });
    sandbox.faults.add({ kind: "stale-timestamp", flow: "connect" });
    sandbox.faults.add({ kind: "extra-field", event: "connected_account.approved" });
    sandbox.faults.add({ kind: "resplit" });
    sandbox.accounts.decide(sandbox.accounts.create().id, "approved");
    await sandbox.deliveries.waitFor({ state: "delivered" });
    const sent = merchant.received[0];
    const body = sent?.body ?? "{}";
    const envelope: Record<string, string> = JSON.parse(body);
    expect(envelope.channel).toBe("sandbox");
    expect(Date.now() - Date.parse(envelope.occurred_at ?? "")).toBeGreaterThan(29 * 86_400_000);
    const digest = createHmac("sha256", "s3cr3t-s3cr3t-s3cr3t").update(body).digest("hex");
    expect(sent?.headers["x-connect-signature"]).toBe(`sha256=${digest}`);
    expect(sandbox.faults.list().map(({ kind }) => kind)).toEqual(["resplit"]);
  });
});

describe("a fault of the service's answers", () => {
  it("api-error: 500, and nothing is done", async () => {
    const sandbox = await start();
    sandbox.faults.add({ kind: "api-error", path: "/withdrawal" });
    expect((await pay(sandbox, "POST", "/direct", payment())).status).toBe(200);
    const body = payment();
    const answer = await pay(sandbox, "POST", "/withdrawal", body);
    expect(answer).toMatchObject({
      status: 500,
      body: { success: false, data: { message: /Server error/ } },
    });
    expect(sandbox.transactions.byReference(String(body.reference))).toBe(undefined);
    expect((await pay(sandbox, "POST", "/withdrawal", body)).status).toBe(200);
  });

  it("api-reset: no answer, and nothing is done", async () => {
    const sandbox = await start();
    sandbox.faults.add("api-reset");
    await expect(pay(sandbox, "POST", "/direct", payment({ reference: "r" }))).rejects.toThrow();
    expect(sandbox.transactions.byReference("r")).toBe(undefined);
  });

  it("api-drop-answer: no answer, but it is done", async () => {
    const sandbox = await start();
    sandbox.faults.add({ kind: "api-drop-answer", reference: "r" });
    await expect(pay(sandbox, "POST", "/direct", payment({ reference: "r" }))).rejects.toThrow();
    expect(sandbox.transactions.byReference("r")).toBeDefined();
  });

  it.each(["order-1", "a b", "ä/ö", "100%"])("hits the look-up by the reference %j", async (reference) => {
    const sandbox = await start();
    const find = (text: string) => pay(sandbox, "GET", `/transaction/ref/${encodeURIComponent(text)}`);
    sandbox.faults.add({ kind: "api-error", reference });
    expect((await find("another")).status).toBe(200);
    expect((await find(reference)).status).toBe(500);
    expect((await find(reference)).status).toBe(200);
  });

  it("leaves the look-up alone where a magic reference broke the payment, so that its outcome can be found", async () => {
    const sandbox = await start();
    expect((await pay(sandbox, "POST", "/direct", payment({ reference: "sbx-error-1" }))).status).toBe(500);
    expect((await pay(sandbox, "GET", "/transaction/ref/sbx-error-1")).status).toBe(200);
  });

  it("api-delay: the answer comes later", async () => {
    const clock = manualClock();
    const sandbox = await start({ clock });
    sandbox.faults.add({ kind: "api-delay", delayMs: 9_000 });
    const answer = pay(sandbox, "GET", "/transaction/x");
    await expect.poll(() => clock.waiting()).toContain(9_000);
    await clock.advance(9_000);
    expect((await answer).status).toBe(200);
  });
});

describe("a fault of the service's answers at a rate", () => {
  it("is drawn anew for every call: a repeated call gets through", async () => {
    const sandbox = await start({ seed: "seed" });
    sandbox.faults.add({ kind: "api-error", rate: 0.5 });
    const statuses: number[] = [];
    for (let call = 0; call < 30; call++) {
      statuses.push((await pay(sandbox, "POST", "/direct", payment({ reference: "order-1" }))).status);
    }
    // The first call that gets through takes the payment. The others find its reference used.
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 500).length).toBeGreaterThan(5);
    expect(statuses.filter((status) => status === 400).length).toBeGreaterThan(5);
  });

  it("hits the same calls for the same seed, whatever was called in between, and after a reset", async () => {
    const sandbox = await start({ seed: "seed" });
    const hits = async (between: boolean) => {
      await sandbox.reset();
      sandbox.faults.add({ kind: "api-error", rate: 0.5, path: "/transaction" });
      const statuses: number[] = [];
      for (let call = 0; call < 20; call++) {
        if (between) await pay(sandbox, "POST", "/direct", payment());
        statuses.push((await pay(sandbox, "GET", "/transaction/ref/order-1")).status);
      }
      return statuses;
    };
    const first = await hits(false);
    expect(new Set(first)).toEqual(new Set([200, 500]));
    expect(await hits(true)).toEqual(first);
  });
});

describe("the faults", () => {
  it("happen as often as they say, to the deliveries that they name", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    const fault = sandbox.faults.add({ kind: "extra-field", times: 2, event: "DEPOSIT" });
    sandbox.withdraw({ reference: "w" });
    for (const reference of ["a", "b", "c"]) {
      sandbox.deposit({ reference });
      await sandbox.deliveries.waitFor({ reference, state: "delivered" });
    }
    await sandbox.deliveries.waitFor({ reference: "w", state: "delivered" });
    const hit = sandbox.deliveries.list().filter(({ attempts }) => attempts[0]?.faults.length);
    expect(hit.map(({ reference }) => reference)).toEqual(["a", "b"]);
    expect(sandbox.faults.list()).toEqual([]);
    expect(fault).toMatchObject({ id: "fault_1", remaining: 2, fired: 0 });
  });

  it("by rate hit the same deliveries for the same seed, in whatever order they come", async () => {
    const merchant = await receiver();
    const references = Array.from({ length: 60 }, (_, index) => `order-${index}`);
    const hits = async (seed: string, order: string[]) => {
      const sandbox = await start({ seed, callbackUrl: merchant.url });
      sandbox.faults.add({ kind: "extra-field", rate: 0.3 });
      for (const reference of order) sandbox.deposit({ reference });
      await expect.poll(() => sandbox.deliveries.list({ state: "delivered" })).toHaveLength(60);
      const hit = sandbox.deliveries
        .list()
        .filter(({ attempts }) => attempts[0]?.faults.includes("extra-field"));
      return hit.map(({ reference }) => reference).sort();
    };
    const first = await hits("seed 1", references);
    expect(first.length).toBeGreaterThan(8);
    expect(first.length).toBeLessThan(30);
    expect(await hits("seed 1", references.toReversed())).toEqual(first);
    expect(await hits("seed 2", references)).not.toEqual(first);
  });

  it("are listed, removed and cleared", async () => {
    const sandbox = await start();
    const one = sandbox.faults.add("reset");
    sandbox.faults.add({ kind: "delay", rate: 0.5 });
    expect(sandbox.faults.list()).toMatchObject([
      { kind: "reset", remaining: 1 },
      { kind: "delay", remaining: null },
    ]);
    expect(sandbox.faults.remove(one.id)).toBe(true);
    expect(sandbox.faults.remove(one.id)).toBe(false);
    sandbox.faults.clear();
    expect(sandbox.faults.list()).toEqual([]);
  });

  it.each([
    { kind: "fire" },
    { kind: "delay", rate: 2 },
    { kind: "delay", rate: 0 },
    { kind: "delay", times: 0.5 },
    { kind: "delay", delayMs: -1 },
    { kind: "delay", delayMs: 1e17 },
    { kind: "stale-timestamp", ageMs: 1e17 },
    { kind: "stale-timestamp", ageMs: 1e12 + 1 },
    { kind: "delay", flow: "payment" },
    { kind: "delay", event: "deposit" },
    { kind: "delay", event: 7 },
    { kind: "delay", reference: 7 },
    { kind: "delay", reference: "" },
    { kind: "api-error", path: ["/direct"] },
    { kind: "extra-field", field: "tip" },
    { kind: "extra-field", field: { name: "tip" } },
    { kind: "extra-field", field: { name: "tip", value: 1 } },
    { kind: "extra-field", field: { name: "signature", value: "x" } },
  ])("refuse a rule that makes no sense: %j", async (rule) => {
    const sandbox = await start();
    expect(() => sandbox.faults.add(rule as unknown as FaultRule)).toThrow(/must be/);
    expect(sandbox.faults.list()).toEqual([]);
  });

  it("refuse an age that no date has, with a code and over HTTP, and leave deliveries alone", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url, ...quick });
    const refused = await call(sandbox, "POST", "/sandbox/faults", { kind: "stale-timestamp", ageMs: 1e17 });
    expect(refused.status).toBe(400);
    expect(refused.body.data.errors).toEqual([
      { field: "ageMs", message: expect.stringContaining("1000000000000") },
    ]);
    sandbox.faults.add({ kind: "stale-timestamp", ageMs: 1e12 });
    sandbox.deposit({ reference: "order-1" });
    const { attempts } = await sandbox.deliveries.waitFor({ reference: "order-1", state: "delivered" });
    expect(attempts).toMatchObject([{ acknowledged: true, faults: ["stale-timestamp"] }]);
  });

  it("refuse a member that they do not know, and name those that they do", async () => {
    const sandbox = await start();
    const misspelled = { kind: "delay", delay: 9_000 } as FaultRule;
    expect(() => sandbox.faults.add(misspelled)).toThrow(/delay is not a member of a fault.*delayMs/);
  });

  it("take every member that they have", async () => {
    const sandbox = await start();
    const rule = {
      kind: "extra-field",
      times: 3,
      rate: 0.5,
      flow: "payments",
      event: "DEPOSIT",
      reference: "order-1",
      path: "/direct",
      delayMs: 1,
      ageMs: 1,
      field: { name: "tip", value: "1.00" },
    } as const;
    expect(sandbox.faults.add(rule)).toMatchObject(rule);
    expect(sandbox.faults.add({ kind: "delay", times: undefined }).remaining).toBe(1);
  });

  it("of a magic reference need a callback to happen to", async () => {
    const sandbox = await start({ outcome: "PENDING" });
    sandbox.deposit({ reference: "sbx-duplicate" });
    expect(sandbox.faults.list()).toEqual([]);
    sandbox.deposit({ reference: "sbx-duplicate-2", callback_url: "http://127.0.0.1:1/" });
    expect(sandbox.faults.list()).toMatchObject([{ kind: "duplicate", reference: "sbx-duplicate-2" }]);
  });

  it("of a magic reference come with their transaction, or neither comes", async () => {
    const sandbox = await start({ callbackUrl: "http://127.0.0.1:1/", outcome: "PENDING" });
    sandbox.deposit({ reference: "sbx-duplicate-1" });
    expect(() => sandbox.deposit({ reference: "sbx-duplicate-1" })).toThrow(/used before/);
    expect(sandbox.faults.list()).toHaveLength(1);
  });

  it("of magic references do not count for the limit", async () => {
    const sandbox = await start({ callbackUrl: "http://127.0.0.1:1/", outcome: "PENDING" });
    for (let n = 0; n < 1_001; n++) sandbox.deposit({ reference: `sbx-dropped-${n}` });
    for (let n = 0; n < 1_000; n++) sandbox.faults.add("delay");
    expect(() => sandbox.faults.add("delay")).toThrow(/1000 faults/);
    expect(sandbox.faults.list()).toHaveLength(2_001);
    sandbox.deposit({ reference: "sbx-dropped" });
    for (const { id } of sandbox.faults.list().slice(1)) sandbox.faults.remove(id);
    expect(sandbox.faults.list()).toMatchObject([{ kind: "drop-answer", reference: "sbx-dropped-0" }]);
    for (let n = 0; n < 1_000; n++) sandbox.faults.add("delay");
    expect(() => sandbox.faults.add("delay")).toThrow(/1000 faults/);
  });

  it("of a magic reference end with their transaction", async () => {
    const limits = { transactions: 3 };
    const sandbox = await start({ callbackUrl: "http://127.0.0.1:1/", outcome: "PENDING", limits });
    const left = () => sandbox.faults.list().map(({ reference }) => reference);
    const { transaction } = sandbox.checkout({ reference: "sbx-dropped-cancelled" });
    sandbox.deposit({ reference: "sbx-dropped-1" });
    sandbox.deposit({ reference: "sbx-dropped-2" });
    expect(left()).toEqual(["sbx-dropped-cancelled", "sbx-dropped-1", "sbx-dropped-2"]);
    sandbox.transactions.decide(transaction.id, "cancel");
    expect(left()).toEqual(["sbx-dropped-1", "sbx-dropped-2"]);
    // It is forgotten now, and after it the oldest of the others.
    sandbox.deposit({ reference: "sbx-dropped-3" });
    sandbox.deposit({ reference: "sbx-dropped-4" });
    expect(left()).toEqual(["sbx-dropped-2", "sbx-dropped-3", "sbx-dropped-4"]);
    sandbox.transactions.setStatus(
      sandbox.transactions.byReference("sbx-dropped-2")?.transaction.id ?? "",
      "FAILED",
      { callback: false },
    );
    expect(left()).toEqual(["sbx-dropped-3", "sbx-dropped-4"]);
  });

  it("are all described", () => {
    for (const { does } of Object.values(FAULT_KINDS)) expect(does).not.toBe("");
  });
});
