import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { MAGIC_OUTCOMES } from "../../src/payments/magic.ts";
import { manualClock } from "../support/manual-clock.ts";
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
    await delivery.locator("button", { hasText: "Sign again" }).click();
    await page.locator("#deliveries .row", { hasText: "replay" }).locator(".pill.good").first().waitFor();

    const transaction = page.locator("#transactions .row", { hasText: "order-7" });
    await transaction.locator("summary").first().click();
    await transaction.locator("button", { hasText: "FAILED" }).click();
    await transaction.locator(".path .pill.bad").waitFor();
    expect(await transaction.evaluate((element) => element.hasAttribute("open"))).toBe(true);
    expect(await overflow(page)).toBe(0);
    await picture(page, `dashboard-used-${name}`);
  });

  it("finds by reference among all, shows what failed only, and says how much it does not show", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url, retry: { baseMs: 60_000, jitter: 0 } });
    for (let n = 1; n <= 120; n++) sandbox.deposit({ reference: `order-${n}` });
    await sandbox.deliveries.waitFor({ reference: "order-120", state: "delivered" });
    const page = await browser.open(sandbox.url, size);
    await live(page);
    expect(await rows(page, "#transactions")).toBe(100);
    expect(await page.locator("#transactions .note").textContent()).toMatch(
      /^Only the last 100 of 120 are shown\./,
    );
    expect(await page.locator("#deliveries .note").textContent()).toMatch(
      /^Only the last 100 of 120 are shown\./,
    );
    expect(await overflow(page)).toBe(0);
    await picture(page, `dashboard-many-${name}`, { isWhole: false });
    sandbox.deposit({ reference: "order-121" });
    await page.locator("#transactions .note", { hasText: "100 of 121" }).waitFor();
    await page.locator("#deliveries .note", { hasText: "100 of 121" }).waitFor();
    expect(await rows(page, "#transactions")).toBe(100);

    // One that is no longer shown, by part of its reference.
    await page.locator(".filter input[type=search]").fill("ORDER-7");
    await page.locator("#transactions .note", { hasText: "11 of 121 match." }).waitFor();
    expect(await page.locator("#transactions .name").allTextContents()).toContain("order-7");
    expect(await rows(page, "#deliveries")).toBe(11);
    expect(new URL(page.url()).search).toBe("?search=ORDER-7");

    // A new transaction is shown in a list whose filter it matches, and only there.
    sandbox.faults.add({ kind: "duplicate", reference: "order-7-again" });
    sandbox.deposit({ reference: "other" });
    sandbox.deposit({ reference: "order-7-again", outcome: "FAILED" });
    const again = page.locator("#deliveries .row", { hasText: "order-7-again" });
    await again.locator(".pill", { hasText: "acknowledged" }).waitFor();
    expect(await page.locator("#transactions .name").allTextContents()).not.toContain("other");
    // A fault is told on the closed row.
    expect(await again.locator("summary .fault").allTextContents()).toEqual(["fault: duplicate"]);

    merchant.answerWith(500);
    sandbox.deposit({ reference: "order-7-refused" });
    await page.locator("#deliveries .row", { hasText: "order-7-refused" }).waitFor();
    await page.locator(".filter input[name=failed]").check();
    await page.locator("#transactions .note", { hasText: "1 of 124 match." }).waitFor();
    expect(await page.locator("#transactions .name").allTextContents()).toEqual(["order-7-again"]);
    expect(await page.locator("#deliveries .row .mono").allTextContents()).toEqual(["order-7-refused"]);
    await picture(page, `dashboard-found-${name}`);
    // It stays after a reload.
    await page.reload();
    await live(page);
    expect(await page.locator(".filter input[name=failed]").isChecked()).toBe(true);
    expect(await page.locator("#transactions .name").allTextContents()).toEqual(["order-7-again"]);
    // A transaction that no longer fits leaves the list.
    const id = sandbox.transactions.byReference("order-7-again")?.transaction.id ?? "";
    sandbox.transactions.setStatus(id, "SUCCESS");
    await page.locator("#transactions .empty", { hasText: "Nothing matches." }).waitFor({ state: "visible" });
  });
});

const rows = (page: Page, list: string): Promise<number> => page.locator(`${list} .row`).count();

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

  it("says what is wrong with an input", async () => {
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

  it("has the dispatch log in sight beside a long list of transactions", async () => {
    const merchant = await receiver();
    const sandbox = await start({ callbackUrl: merchant.url });
    for (let n = 1; n <= 110; n++) sandbox.deposit({ reference: `order-${n}` });
    await sandbox.deliveries.waitFor({ reference: "order-110", state: "delivered" });
    for (const width of [1280, 1024]) {
      const page = await browser.open(sandbox.url, { width, height: 800 });
      await live(page);
      const first = await page.locator("#deliveries .row").first().boundingBox();
      expect((first?.y ?? Infinity) + (first?.height ?? 0)).toBeLessThan(800);
      await picture(page, `dashboard-log-${width}`, { isWhole: false });
    }
  });

  it("shows local times beside those in UTC, in what was there and in what comes", async () => {
    const clock = manualClock(Date.parse("2026-03-01T22:15:07.000Z"));
    const merchant = await receiver();
    const sandbox = await start({ clock, callbackUrl: merchant.url });
    sandbox.deposit({ reference: "order-1", outcome: "PENDING" });
    const page = await browser.open(sandbox.url);
    await live(page);
    expect(await page.locator("#zones").textContent()).toBe("Times: UTC / yours (GMT+3)");
    const times = page.locator("#transactions time");
    expect(await times.allTextContents()).toEqual(["22:15:07 / 2 Mar 01:15:07"]);
    sandbox.transactions.setStatus(sandbox.transactions.list()[0]?.transaction.id ?? "", "SUCCESS");
    await page.locator("#transactions .pill.good").waitFor();
    expect(await times.allTextContents()).toEqual(Array(2).fill("22:15:07 / 2 Mar 01:15:07"));
    const delivery = page.locator("#deliveries .row");
    await delivery.locator("summary").click();
    await delivery.locator(".attempt").waitFor();
    expect(await delivery.locator("time").allTextContents()).toEqual(
      Array(2).fill("22:15:07 / 2 Mar 01:15:07"),
    );
    expect(await times.first().getAttribute("title")).toContain("2026-03-01T22:15:07.000Z");
  });

  it("lists the magic references, and puts one into the form that is open", async () => {
    const sandbox = await start();
    const page = await browser.open(sandbox.url);
    await live(page);
    await page.locator(".magic summary").click();
    expect(await page.locator(".magic button").allTextContents()).toEqual(
      MAGIC_OUTCOMES.map(({ name }) => `sbx-${name}`),
    );
    await picture(page, "dashboard-references");
    await page.locator("#tab-button-withdrawal").click();
    for (let n = 0; n < 2; n++) {
      await page.locator(".magic button", { hasText: "sbx-failed" }).click();
      await page.keyboard.press("Enter");
      await page.locator("#transactions .row .pill.bad").nth(n).waitFor();
    }
    const [one, two] = sandbox.transactions.list().map(({ transaction }) => transaction);
    expect([one?.type, one?.status, two?.type, two?.status]).toEqual([
      "WITHDRAWAL",
      "FAILED",
      "WITHDRAWAL",
      "FAILED",
    ]);
    expect(one?.reference).toMatch(/^sbx-failed-\w+$/);
    expect(two?.reference).not.toBe(one?.reference);
  });

  it.each([
    ["copies a key", "", "Copied"],
    [
      "says so where the browser refuses to copy",
      "navigator.clipboard.writeText = () => Promise.reject()",
      /allow/,
    ],
    [
      "says where browsers do not copy",
      "for (const [on, name] of [[navigator, 'clipboard'], [window, 'isSecureContext']]) Object.defineProperty(on, name, { value: undefined })",
      /only over HTTPS or on this machine/,
    ],
  ])("%s", async (_, before, said) => {
    const page = await browser.open((await start()).url);
    await live(page);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.evaluate(before);
    const button = page.locator("#keys [data-copy]").first();
    await button.click();
    await page.locator("#toast", { hasText: said }).waitFor();
    if (before !== "") return;
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
      await button.getAttribute("data-copy"),
    );
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
