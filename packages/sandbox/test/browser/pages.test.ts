import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { receiver, start } from "../support/start.ts";
import { DESKTOP, PHONE, picture, startChromium, type TestBrowser } from "./chromium.ts";

const HOSTILE = `<img src=x onerror="document.title='hacked'">`;

let browser: TestBrowser;

beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser.close());
afterEach(async () => {
  await browser.closePages();
  expect(browser.problems.splice(0)).toEqual([]);
});

const live = async (page: Page) => page.waitForSelector('#live[data-state="live"]');
const overflow = (page: Page) =>
  page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
const focused = (page: Page) => page.evaluate<string>("document.activeElement.textContent.trim()");

describe.each([
  ["desktop", DESKTOP],
  ["phone", PHONE],
] as const)("the dashboard on a %s", (name, size) => {
  it("triggers, shows attempts live, replays, breaks and moves, without a reload", async () => {
    const merchant = await receiver();
    merchant.answerWith(500);
    const sandbox = await start({ callbackUrl: merchant.url, retry: { baseMs: 200, jitter: 0 } });
    const page = await browser.open(sandbox.url, size);
    await live(page);
    await picture(page, `dashboard-empty-${name}`);

    await page.locator("#break select[name=kind]").selectOption("extra-field");
    expect(await page.locator("[data-explanation]").textContent()).toContain("undocumented field");
    await page.locator("#break button", { hasText: "Break it" }).click();
    await page.locator(".faults li", { hasText: "extra-field" }).waitFor();

    await page.locator("#tab-deposit input[name=reference]").fill("order-7");
    await page.locator("#tab-deposit button").click();
    const delivery = page.locator("#deliveries .row", { hasText: "order-7" });
    await delivery.locator(".pill", { hasText: "acknowledged" }).waitFor();
    expect(await delivery.locator(".dot").count()).toBe(2);
    expect(await page.locator(".faults li").count()).toBe(0);

    await delivery.locator("summary").first().click();
    await delivery.locator(".attempt").first().waitFor();
    const canonicalString = sandbox.deliveries.list()[0]?.attempts[1]?.canonicalString ?? "";
    expect(await delivery.locator(".attempt").first().textContent()).toContain(canonicalString.slice(0, 40));
    await picture(page, `dashboard-open-${name}`);
    await delivery.locator("button", { hasText: "Sign anew" }).click();
    await page.locator("#deliveries .row", { hasText: "replay" }).locator(".pill.good").first().waitFor();

    const transaction = page.locator("#transactions .row", { hasText: "order-7" });
    await transaction.locator("summary").first().click();
    await transaction.locator("button", { hasText: "FAILED" }).click();
    await transaction.locator(".path .pill.bad").waitFor();
    expect(await transaction.evaluate((element) => element.hasAttribute("open"))).toBe(true);
    expect(await overflow(page)).toBe(0);
    await picture(page, `dashboard-used-${name}`);
  });
});

describe("the dashboard", () => {
  it("shows hostile references as text, as they arrive and after a reload", async () => {
    const sandbox = await start();
    const page = await browser.open(sandbox.url);
    await live(page);
    sandbox.deposit({ reference: HOSTILE, outcome: [{ status: "FAILED", message: HOSTILE }] });
    await page.locator("#transactions .row .pill.bad").waitFor();
    expect(await page.locator("#transactions .name").textContent()).toBe(HOSTILE);
    await page.reload();
    expect(await page.locator("#transactions .name").textContent()).toBe(HOSTILE);
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).toBe("Payhooks sandbox");
  });

  it("tells what is wrong with an input", async () => {
    const page = await browser.open((await start()).url);
    await page.locator("#tab-deposit input[name=amount]").fill("1");
    await page.locator("#tab-deposit button").click();
    await page.locator("#toast.problem", { hasText: "amount" }).waitFor();
    // Chromium reports every answer of 400 as an error of loading.
    expect(browser.problems.splice(0)).toEqual([expect.stringContaining("400")]);
  });

  it("rotates the key, configures webhooks, decides on KYC, and resets", async () => {
    const merchant = await receiver();
    const sandbox = await start();
    const page = await browser.open(sandbox.url);
    await live(page);
    const { keyId } = sandbox.keys;
    await page.locator("#keys button", { hasText: "Rotate key" }).click();
    await expect.poll(() => sandbox.keys.keyId, { timeout: 10_000 }).not.toBe(keyId);
    await page.locator("#keys", { hasText: sandbox.keys.keyId }).waitFor();
    await page.locator("#connect input[name=webhook_url]").fill(merchant.url);
    await page.locator("#connect input[name=webhook_secret]").fill("whsec_0123456789abcdef");
    await page.locator("#connect input[name=webhook_enabled]").check();
    await page.locator("#connect button", { hasText: "Save" }).click();
    await page.locator("#connect .pill", { hasText: "webhooks on" }).waitFor();
    await page.locator("#connect button", { hasText: "New account" }).click();
    await page.locator("#connect button", { hasText: "Approve" }).click();
    await page.locator("#deliveries .row", { hasText: "connected_account.approved" }).waitFor();
    await picture(page, "dashboard-accounts");
    await page.locator(".bar button", { hasText: "Reset" }).click();
    await page.locator("#deliveries .empty").waitFor({ state: "visible" });
    expect(sandbox.deliveries.list()).toEqual([]);
  });

  it("can be used by keyboard alone", async () => {
    const sandbox = await start();
    const page = await browser.open(sandbox.url);
    await live(page);
    await page.locator("#tab-button-deposit").focus();
    await page.keyboard.press("ArrowRight");
    expect(await focused(page)).toBe("Withdrawal");
    await page.locator("#tab-withdrawal input[name=reference]").focus();
    await page.keyboard.type("payout-1");
    await page.keyboard.press("Enter");
    const row = page.locator("#transactions .row", { hasText: "payout-1" });
    await row.locator(".pill.good").waitFor();
    await row.locator("summary").focus();
    await page.keyboard.press("Enter");
    await row.locator("button", { hasText: "PENDING" }).waitFor();
    expect(sandbox.transactions.byReference("payout-1")?.order.type).toBe("WITHDRAWAL");
  });
});

describe.each([
  ["desktop", DESKTOP],
  ["phone", PHONE],
] as const)("the hosted checkout on a %s", (name, size) => {
  it("takes the customer through paying and back to the shop", async () => {
    const sandbox = await start({ delayMs: 300 });
    const { url, transaction } = sandbox.checkout({
      reference: HOSTILE,
      description: HOSTILE,
      amount: "2499.00",
    });
    const page = await browser.open(url, size);
    expect(await overflow(page)).toBe(0);
    await page.locator("label.medium", { hasText: "M-Pesa" }).click();
    await picture(page, `checkout-${name}`);
    await page.locator("button.primary").click();
    await page.locator("h1", { hasText: "Payment complete" }).waitFor();
    await picture(page, `checkout-paid-${name}`);
    await page.waitForURL("**/checkout-success");
    expect(sandbox.transactions.get(transaction.id)?.transaction).toMatchObject({
      medium: "MPESA",
      status: "SUCCESS",
    });
    expect(await page.title()).not.toBe("hacked");
  });

  it("lets the customer cancel without choosing, and does not pay without a choice", async () => {
    const sandbox = await start();
    const { url, transaction } = sandbox.checkout();
    const page = await browser.open(url, size);
    await page.locator("button.primary").click();
    expect(page.url()).toBe(url);
    await page.locator("button", { hasText: "Cancel" }).click();
    await page.locator("h1", { hasText: "Payment cancelled" }).waitFor();
    await page.waitForURL("**/checkout-failed");
    expect(sandbox.transactions.get(transaction.id)?.transaction.status).toBe("CANCELLED");
  });
});
