import { createClient } from "@payhooks/client";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { picture, startChromium, type TestBrowser } from "../../packages/sandbox/test/browser/chromium.ts";
import { PAYMENT_PATHS } from "../conformance/application.ts";
import { onNode, startServer } from "../conformance/targets.ts";
import { allDelivered, FAULTS, faultsIn, runsOf, startLossySandbox } from "../e2e/lossy-sandbox.ts";

let browser: TestBrowser;
beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser.close());

describe("a customer pays in a browser, while answers are lost, doubled and reordered", {
  timeout: 180_000,
}, () => {
  it.each([
    ["Express", "express.ts", ["5"]],
    ["Hono", "hono.ts", []],
  ] as const)("onDeposit runs once per checkout on %s", async (name, file, args) => {
    const server = await startServer(onNode(file, ...args));
    onTestFinished(() => server.stop());
    const sandbox = await startLossySandbox(server.port);
    onTestFinished(() => sandbox.close());
    const [publicKey = "", secretKey = ""] = sandbox.keys.apiKey.split(":");
    const client = createClient({ baseUrl: sandbox.url, publicKey, secretKey, allowHttpLoopback: true });
    const references = Array.from({ length: 8 }, (_, n) => `cart-${n + 1}`);
    for (const reference of references) {
      const { checkoutUrl } = await client.checkout({
        amount: "1200.00",
        currency: "ETB",
        phone_number: "251911234567",
        reference,
        callback_url: `http://127.0.0.1:${server.port}${PAYMENT_PATHS.plain}`,
        redirects: { success: `${sandbox.url}/checkout-success`, failed: `${sandbox.url}/checkout-failed` },
        supported_mediums: ["TELEBIRR", "MPESA"],
      });
      const page = await browser.open(checkoutUrl ?? "");
      await page.locator("label.medium", { hasText: "M-Pesa" }).click();
      await page.locator("button.primary").click();
      await page.locator("h1", { hasText: "Payment complete" }).waitFor();
      await picture(page, `paid-${name}-${reference}`);
      await page.locator("a", { hasText: "Back to the merchant" }).click();
      await page.waitForURL("**/checkout-success");
      await page.close();
    }
    const deliveries = await allDelivered(sandbox, references.length);
    expect(Object.keys(faultsIn(deliveries)).toSorted()).toEqual(FAULTS.toSorted());
    const wanted = references.map((reference) => `${reference} SUCCESS`);
    expect((await runsOf(server.port, () => true, wanted.length)).toSorted()).toEqual(wanted);
    for (const reference of references) {
      expect(await client.transactionByReference(reference)).toMatchObject({
        status: "SUCCESS",
        medium: "MPESA",
      });
    }
    expect(browser.problems.splice(0)).toEqual([]);
  });
});
