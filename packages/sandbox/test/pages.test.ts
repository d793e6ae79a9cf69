import { Script } from "node:vm";
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../src/index.ts";
import { receiver, start } from "./support/start.ts";

const HOSTILE = `"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;`;

const get = async (url: string) => {
  const response = await fetch(url, { redirect: "manual" });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

const post = (url: string, form: Record<string, string>) =>
  fetch(url, { method: "POST", body: new URLSearchParams(form), redirect: "manual" });

const open = (sandbox: Sandbox, reference = "order-1") =>
  sandbox.checkout({
    reference,
    amount: "1250.00",
    supported_mediums: ["MPESA", "CBE"],
    redirects: { success: "https://shop.example/paid?a=1&b=2", failed: "https://shop.example/failed" },
  });

describe("the hosted checkout", () => {
  it("offers the mediums of the session and no other", async () => {
    const { status, text, headers } = await get(open(await start()).url);
    expect(status).toBe(200);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect([...text.matchAll(/name="medium" value="(\w+)"/g)].map(([, medium]) => medium)).toEqual([
      "MPESA",
      "CBE",
    ]);
    expect(text).toContain("1,250.00");
  });

  it("pay: waits for the result and leads back to redirects.success", async () => {
    const sandbox = await start({ delayMs: 3_600_000 });
    const { url, transaction } = open(sandbox);
    const answer = await post(url, { decision: "pay", medium: "CBE" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/checkout/${transaction.id}`]);
    expect((await get(url)).text).toContain("Waiting for CBE");
    sandbox.transactions.setStatus(transaction.id, "SUCCESS");
    const { text } = await get(url);
    expect(text).toContain("Payment complete");
    expect(text).toContain("You will be taken to https://shop.example/paid");
    expect(text).toContain(`content="3;url=https://shop.example/paid?a=1&amp;b=2"`);
  });

  it.each([
    ["fail", "FAILED", "Payment failed"],
    ["cancel", "CANCELLED", "Payment cancelled"],
  ])("%s: %s, and back to redirects.failed", async (decision, status, title) => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    const { url, transaction } = open(sandbox);
    expect((await post(url, { decision, medium: "MPESA" })).status).toBe(303);
    const { text } = await get(url);
    expect(text).toContain(title);
    expect(text).toContain(`href="https://shop.example/failed"`);
    expect(sandbox.transactions.get(transaction.id)?.transaction.status).toBe(status);
    await sandbox.deliveries.idle();
    expect(merchant.received).toHaveLength(decision === "fail" ? 1 : 0);
  });

  it("decides once: a second click changes nothing", async () => {
    const sandbox = await start();
    const { url, transaction } = open(sandbox);
    await post(url, { decision: "cancel" });
    expect((await post(url, { decision: "pay", medium: "CBE" })).status).toBe(303);
    expect(sandbox.transactions.get(transaction.id)?.transaction.status).toBe("CANCELLED");
  });

  it.each([{ decision: "pay" }, { decision: "pay", medium: "TELEBIRR" }, { decision: "steal" }, {}])(
    "shows the page again for a choice that is none: %j",
    async (form) => {
      const sandbox = await start();
      const { url, transaction } = open(sandbox);
      const answer = await post(url, { ...form });
      expect(answer.status).toBe(400);
      expect(await answer.text()).toContain('role="alert"');
      expect(sandbox.transactions.get(transaction.id)?.awaitsCustomer).toBe(true);
    },
  );

  it("can still be paid after it was moved to PENDING", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    const { url, transaction } = open(sandbox);
    sandbox.transactions.setStatus(transaction.id, "PENDING");
    expect(sandbox.transactions.get(transaction.id)?.awaitsCustomer).toBe(true);
    expect((await get(url)).text).toContain(">Cancel</button>");
    await post(url, { decision: "pay", medium: "CBE" });
    await sandbox.deliveries.waitFor({ status: "SUCCESS", state: "delivered" });
    expect((await get(url)).text).toContain("Payment complete");
  });

  it("cannot be paid after it was moved to a final status", async () => {
    const sandbox = await start();
    const { url, transaction } = open(sandbox);
    sandbox.transactions.setStatus(transaction.id, "FAILED");
    expect((await get(url)).text).toContain("Payment failed");
    expect(() => sandbox.transactions.decide(transaction.id, "pay", "CBE")).toThrow(/already decided/);
  });

  it("is 404 for unknown ids and for a transaction that is not a checkout", async () => {
    const sandbox = await start();
    const { transaction } = sandbox.deposit();
    for (const id of ["x", transaction.id])
      expect((await get(`${sandbox.url}/checkout/${id}`)).status).toBe(404);
    expect((await post(`${sandbox.url}/checkout/x`, {})).status).toBe(404);
  });

  it("opened from the dashboard ends on pages of the sandbox", async () => {
    const sandbox = await start();
    const { order } = sandbox.checkout();
    for (const url of [order.successUrl, order.failedUrl]) expect((await get(url ?? "")).status).toBe(200);
  });
});

describe("text that others write", () => {
  it("is shown as text on every page", async () => {
    const merchant = await receiver();
    merchant.answerWith((response) => response.writeHead(500).end(HOSTILE));
    const sandbox = await start({ callbackUrl: `${merchant.url}?x=%3Cscript%3E` });
    sandbox.script(HOSTILE, [{ status: "FAILED", message: HOSTILE }]);
    sandbox.deposit({ reference: HOSTILE, description: HOSTILE });
    sandbox.faults.add({ kind: "extra-field", reference: HOSTILE, times: 2 });
    const delivery = await sandbox.deliveries.waitFor({ state: "retrying" });
    const checkout = sandbox.checkout({ reference: `c${HOSTILE}`, description: HOSTILE });
    const pages = [sandbox.url, checkout.url, `${sandbox.url}/sandbox/parts/deliveries/${delivery.id}`];
    for (const url of pages) {
      const { text } = await get(url);
      expect(text).toContain("&lt;script&gt;alert(1)");
      expect(text).not.toContain("<script>alert");
      expect(text).not.toContain("<img src=x");
    }
  });

  it("could run nothing even if it were not", async () => {
    const { headers } = await get((await start()).url);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });
});

describe("the dashboard", () => {
  it("names things as its readers do", async () => {
    const merchant = await receiver();
    merchant.answerWith(500);
    const sandbox = await start({ callbackUrl: merchant.url, retry: { baseMs: 60_000, maxAttempts: 2 } });
    open(sandbox);
    sandbox.faults.add({ kind: "duplicate", reference: "twice" });
    for (const reference of ["once", "twice"]) {
      sandbox.deposit({ reference });
      await expect.poll(() => sandbox.deliveries.list({ reference })[0]?.attempts.length).toBeGreaterThan(0);
    }
    const { text } = await get(sandbox.url);
    expect(text).toContain("<summary>Magic references (sbx-)</summary>");
    expect(text).toContain('<option value="">default</option>');
    expect(text).toContain(">waiting for the customer<");
    expect(text).toContain('aria-label="1 attempt"');
    expect(text).toContain('aria-label="2 attempts"');
  });

  it("has a script that is JavaScript in one piece", async () => {
    const { text, headers } = await get(`${(await start()).url}/sandbox/assets/dashboard.js`);
    expect(headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(() => new Script(text)).not.toThrow();
    expect(text).toContain("new EventSource(`/sandbox/events");
  });

  it("loads nothing from elsewhere", async () => {
    const sandbox = await start();
    const { text } = await get(sandbox.url);
    const loaded = [...text.matchAll(/<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"/g)].map(
      ([, path]) => path ?? "",
    );
    expect(loaded.length).toBeGreaterThan(2);
    for (const path of loaded) expect((await get(sandbox.url + path)).status).toBe(200);
  });

  it("filters by the address alone, without a script", async () => {
    const merchant = await receiver();
    merchant.answerWith(500);
    const sandbox = await start({ callbackUrl: merchant.url, retry: { baseMs: 60_000, jitter: 0 } });
    sandbox.deposit({ reference: "Order-7", outcome: "FAILED" });
    await sandbox.deliveries.waitFor({ reference: "Order-7", state: "retrying" });
    const { transaction } = sandbox.deposit({ reference: "order-17" });
    await sandbox.deliveries.waitFor({ reference: "order-17", state: "delivered" });
    const found = async (query: string) => {
      const { text } = await get(`${sandbox.url}/${query}`);
      const parts = await get(`${sandbox.url}/sandbox/parts/lists${query}`);
      expect(text).toContain(parts.text);
      const rows = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, reference]) => reference);
      return [rows(/<span class="name">(order-\d+)</gi), rows(/<span class="sub mono">(order-\d+)</gi)];
    };
    expect(await found("")).toEqual([
      ["order-17", "Order-7"],
      ["order-17", "Order-7"],
    ]);
    expect(await found("?search=ORDER-7")).toEqual([["Order-7"], ["Order-7"]]);
    expect(await found(`?search=%20${transaction.id}`)).toEqual([["order-17"], ["order-17"]]);
    expect(await found("?failed=1")).toEqual([["Order-7"], ["Order-7"]]);
    expect(await found("?failed=1&search=order-17")).toEqual([[], []]);
    const { text } = await get(`${sandbox.url}/?search=${encodeURIComponent(HOSTILE)}`);
    expect(text).toContain(`value="&quot;&gt;&lt;script&gt;alert(1)`);
    expect(text).toContain("Nothing matches.");
  });

  it("answers 404 for a delivery that left the log", async () => {
    const sandbox = await start();
    expect((await get(`${sandbox.url}/sandbox/parts/deliveries/x`)).status).toBe(404);
  });
});
