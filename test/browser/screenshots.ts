/** Makes the pictures of the documentation: `npm run screenshots`. They show real pages over real events. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { memoryInbox } from "@payhooks/core";
import { fakeClock } from "@payhooks/core/testing";
import { createSandbox } from "@payhooks/sandbox";
import { PHONE, startChromium } from "../../packages/sandbox/test/browser/chromium.ts";
import { root } from "../package/workspace.ts";
import { type ConsoleMerchant, startConsoleMerchant } from "./console-merchant.ts";

const MINUTE_MS = 60_000;
const DESKTOP = { width: 1280, height: 860 };

/** The merchant's clock: an hour passes in a moment. */
const clock = fakeClock(Date.now() - 60 * MINUTE_MS);

const folder = join(root, "docs/images");
mkdirSync(folder, { recursive: true });
const browser = await startChromium();
const merchant = await startConsoleMerchant({ inbox: memoryInbox({ clock }), clock, redact: ["userId"] });
const sandbox = await createSandbox({
  delayMs: 0,
  callbackUrl: merchant.callbacksUrl,
  merchant: merchant.sandboxKeys,
});
await anHour(merchant);
await consolePictures();
await sandboxPictures();
console.log(browser.problems.length === 0 ? `The pictures are in ${folder}.` : browser.problems.join("\n"));
await browser.close();
await sandbox.close();
await merchant.close();
process.exit(browser.problems.length === 0 ? 0 : 1);

/** A shop's hour, in which its bank is away for a while. */
async function anHour({ callback, post, fail, forged }: ConsoleMerchant): Promise<void> {
  let order = 4100;
  for (let minute = 60; minute > 0; minute--) {
    const isAway = minute > 14 && minute < 19;
    fail(isAway ? "connect ECONNREFUSED 10.0.3.7:5432: the ledger is away" : null);
    for (let n = 0; n < (isAway ? 2 : 3 + ((minute * 7) % 5)); n++) {
      await callback(
        { referenceId: `order-${order++}`, amount: `${100 + ((order * 37) % 900)}.000000` },
        clock.now(),
      );
    }
    if (minute % 13 === 6) await post(forged(`order-${order++}`));
    await clock.advance(1_000);
    await clock.advance(MINUTE_MS - 1_000);
  }
}

async function consolePictures(): Promise<void> {
  const page = await browser.open(merchant.url, DESKTOP);
  await page.waitForSelector('#live[data-state="live"]');
  await page.screenshot({ path: join(folder, "console.png") });
  await page.locator(".event", { hasText: "exhausted" }).first().click();
  await page.waitForSelector('#live[data-state="live"]');
  await page.screenshot({ path: join(folder, "console-event.png") });
  await page.locator("button", { hasText: "Replay…" }).click();
  await page.locator("#note").fill("The ledger is back: see incident 231.");
  await page.locator("#confirm").click();
  await page.locator("#eventPage .pill.good").first().waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(merchant.url);
  await page.waitForSelector('#live[data-state="live"]');
  await page.screenshot({ path: join(folder, "console-dark.png") });
  const phone = await browser.open(merchant.url, PHONE);
  await phone.waitForSelector('#live[data-state="live"]');
  await phone.screenshot({ path: join(folder, "console-phone.png") });
}

async function sandboxPictures(): Promise<void> {
  for (const reference of ["order-5001", "order-5002", "order-5003"]) sandbox.deposit({ reference });
  sandbox.faults.add({ kind: "duplicate", times: 1 });
  sandbox.deposit({ reference: "order-5004", outcome: "FAILED" });
  await sandbox.deliveries.waitFor({ reference: "order-5004", state: "delivered" });
  const page = await browser.open(sandbox.url, DESKTOP);
  await page.waitForSelector('#live[data-state="live"]');
  await page.locator("#deliveries .row summary").first().click();
  await page.locator(".attempt").first().waitFor();
  await page.screenshot({ path: join(folder, "sandbox.png") });
}
