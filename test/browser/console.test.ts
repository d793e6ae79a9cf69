import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Inbox } from "@payhooks/core";
import { memoryInbox } from "@payhooks/core";
import { postgresInbox } from "@payhooks/core/postgres";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  DESKTOP,
  PHONE,
  picture,
  startChromium,
  type TestBrowser,
} from "../../packages/sandbox/test/browser/chromium.ts";
import { postgresBin } from "../../scripts/postgres-server.mjs";
import { hasRedis } from "../../scripts/redis-server.mjs";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import { type ConsoleMerchant, startConsoleMerchant } from "./console-merchant.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const servers = new Scope();
let browser: TestBrowser;
beforeAll(async () => {
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await servers.close();
});
afterEach(async () => {
  await browser.closePages();
  expect(browser.problems.splice(0)).toEqual([]);
});

/** An inbox of each kind, on a server or in a file of its own. */
const INBOXES: readonly (readonly [name: string, open: () => Promise<Inbox>])[] = [
  [
    "SQLite",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "payhooks-console-"));
      servers.add(folder, (one) => rmSync(one, { recursive: true }));
      return sqliteInbox(join(folder, "inbox.db"));
    },
  ],
  ["Redis", async () => redisInbox((await RedisServer.start(servers)).url, { logger: silent })],
  ["PostgreSQL", async () => postgresInbox((await PostgresServer.start(servers)).url, { logger: silent })],
];
const missing = (name: string): boolean =>
  (name === "Redis" && !hasRedis()) || (name === "PostgreSQL" && postgresBin() === null);

/** A picture in dark colours, and one in light colours, which stay. */
async function pictures(page: Page, what: string, size: string): Promise<void> {
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, `${what}-dark-${size}`);
  await page.emulateMedia({ colorScheme: "light" });
  await picture(page, `${what}-${size}`);
}

async function merchantOn(
  inbox: Inbox = memoryInbox(),
  more: Omit<Parameters<typeof startConsoleMerchant>[0], "inbox"> = {},
): Promise<ConsoleMerchant> {
  const merchant = await startConsoleMerchant({ inbox, ...more });
  onTestFinished(() => merchant.close());
  return merchant;
}

const live = async (page: Page) => page.waitForSelector('#live[data-state="live"]');
const overflow = (page: Page) =>
  page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
const heldCount = (page: Page, count: number) =>
  page.locator("#tile-held .number", { hasText: new RegExp(`^${count}$`) }).waitFor();

/** The serious problems that axe finds, in light and in dark. */
async function seriousProblems(page: Page): Promise<readonly string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.evaluate(axe);
    found.push(
      ...(await page.evaluate<string[]>(`axe.run().then(({ violations }) => violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => "${colorScheme} " + id + " " + target + " " + failureSummary)))`)),
    );
  }
  return found;
}

describe.each(INBOXES.filter(([name]) => !missing(name)))("the console over %s", (name, open) => {
  it("shows an event that fails, is tried again and held; it is found by its reference and replayed", async () => {
    const merchant = await merchantOn(await open());
    const page = await browser.open(merchant.url);
    await live(page);
    await page.locator(".empty", { hasText: "Nothing is held" }).waitFor();
    merchant.fail("the ledger is away");
    expect(await merchant.callback({ referenceId: "order-17" })).toBe(200);
    expect(await merchant.callback({ referenceId: "order-18" })).toBe(200);
    await heldCount(page, 2);
    await page.locator(".legend li", { hasText: "to be tried again 2" }).waitFor();

    await page.locator("#search").fill("order-17");
    await page.keyboard.press("Enter");
    await page.locator("#events-title", { hasText: "Found for order-17" }).waitFor();
    expect(await page.locator(".event").count()).toBe(1);
    await page.locator(".event").click();
    await page.locator("#event-title", { hasText: "order-17" }).waitFor();
    await live(page);
    expect(await page.locator("#eventPage").textContent()).toMatch(
      /exhausted[\s\S]*the ledger is away[\s\S]*2 attempts/,
    );
    await picture(page, `console-held-${name}`);

    merchant.fail(null);
    await page.locator("button", { hasText: "Replay…" }).click();
    await page.locator("#note").fill("The ledger is back.");
    await page.locator("#confirm").click();
    await page.locator("#eventPage .card > header .pill.good", { hasText: "done" }).first().waitFor();
    expect(merchant.credited).toEqual(["order-17"]);
    await heldCount(page, 1);
    await page.locator("#back").click();
    await page.locator(".log li", { hasText: "Marta (on duty)" }).waitFor();
    expect(await page.locator(".log").textContent()).toContain("The ledger is back.");
  });
});

describe.each([
  ["desktop", DESKTOP],
  ["phone", PHONE],
] as const)("the console on a %s", (name, size) => {
  it("has room for everything, and nothing that axe finds serious", async () => {
    const merchant = await merchantOn();
    merchant.fail(`no account ${"x".repeat(300)}`);
    for (let n = 0; n < 3; n++) await merchant.callback({ referenceId: `order-${n}-${"y".repeat(120)}` });
    await merchant.post(merchant.forged("order-4"));
    const page = await browser.open(merchant.url, size);
    await live(page);
    await heldCount(page, 4);
    await page.locator(".numbers summary").click();
    await page.locator("#more-filters summary").click();
    expect(await overflow(page)).toBe(0);
    expect(await seriousProblems(page)).toEqual([]);
    await picture(page, `console-list-${name}`);
    await page.locator(".event").last().click();
    await live(page);
    expect(await overflow(page)).toBe(0);
    expect(await seriousProblems(page)).toEqual([]);
    await picture(page, `console-life-${name}`);
    await page.locator("button", { hasText: "Discard…" }).click();
    await page.locator(".planned").waitFor();
    expect(await overflow(page)).toBe(0);
    expect(await seriousProblems(page)).toEqual([]);
  });

  it("shows the order of an account's events, which one overtook which, and leads from one to the next", async () => {
    const merchant = await merchantOn();
    const from = Date.now() - 3_600_000;
    merchant.fail("the ledger is away");
    expect(await merchant.webhook("approved", from)).toBe(200);
    await expect.poll(() => merchant.webhook("declined", from + 61_000)).toBe(200);
    await merchant.webhook("approved", from + 90_000);
    merchant.fail(null);
    await merchant.webhook("declined", from + 30_000);
    const page = await browser.open(`${merchant.url}?search=cm_4f1e`, size);
    await live(page);
    expect(await page.locator(".event").count()).toBe(4);
    await page.locator(".event", { hasText: "retrying" }).click();
    await page.locator("#order-title", { hasText: "The same subject" }).waitFor();
    await live(page);
    const rows = page.locator(".order li");
    const states = () => rows.locator(".pill").allTextContents();
    expect(await states()).toEqual(["stale", "stale", "stale", "retrying"]);
    expect(await rows.last().getAttribute("aria-current")).toBe("true");
    expect(await overflow(page)).toBe(0);
    expect(await seriousProblems(page)).toEqual([]);
    await pictures(page, "console-order", name);
    await rows.first().locator("a").click();
    await expect.poll(() => rows.first().getAttribute("aria-current")).toBe("true");
    expect(await rows.first().textContent()).toContain("It was overtaken");
  });

  it("shows amounts old and new before a bulk, replays no contradiction by itself, and says what was held again", async () => {
    const merchant = await merchantOn();
    await merchant.callback({ payTxnId: "pay-1", referenceId: "order-1", amount: "10.500000" });
    await expect.poll(() => merchant.credited).toEqual(["order-1"]);
    await merchant.callback({ payTxnId: "pay-1", referenceId: "order-1", amount: "9999.000000" });
    await merchant.post(merchant.forged("order-x"));
    merchant.fail("the ledger is away");
    for (const n of [2, 3, 4]) {
      await merchant.callback({ payTxnId: `pay-${n}`, referenceId: `order-${n}`, amount: `${n}0.000000` });
    }
    const page = await browser.open(merchant.url, size);
    await live(page);
    await heldCount(page, 5);
    await page.locator("#select-all").check();
    await page.locator("#selection button", { hasText: "Replay…" }).click();
    await page
      .locator("#decide-what", { hasText: "3 of 5 events, by the reasons that are ticked" })
      .waitFor();
    const mismatch = page.locator('.planned[data-reason="mismatch"]');
    expect(await mismatch.textContent()).toMatch(
      /9999\.000000[\s\S]*The same transaction:[\s\S]*10\.500000[\s\S]*A second event of this transaction will run as well/,
    );
    expect(await overflow(page)).toBe(0);
    expect(await seriousProblems(page)).toEqual([]);
    await pictures(page, "console-bulk", name);
    await mismatch.locator("input").check();
    await page.locator("#confirm", { hasText: "Replay (4)" }).waitFor();
    await mismatch.locator("input").uncheck();
    // An event that comes later is not part of it.
    await merchant.callback({ payTxnId: "pay-5", referenceId: "order-5" });
    await heldCount(page, 6);
    await page.locator("#note").fill("The ledger is back.");
    await page.locator("#confirm", { hasText: "Replay (3)" }).click();
    await page.locator("#progress-text", { hasText: "3 replayed: 3 held again." }).waitFor();
    await picture(page, `console-held-again-${name}`);
    await page.locator("#cancel", { hasText: "Close" }).click();
    await heldCount(page, 6);
    expect(merchant.credited).toEqual(["order-1"]);
  });

  it("makes attempts due now that would come in ten minutes, and downloads the list", async () => {
    const merchant = await merchantOn();
    merchant.fail("the bank is away");
    await merchant.webhook("approved", Date.now());
    const page = await browser.open(`${merchant.url}?state=retrying&name=connected_account.approved`, size);
    await live(page);
    await page.locator(".event", { hasText: "tried once: Error: the bank is away" }).waitFor();
    expect(await overflow(page)).toBe(0);
    expect(await seriousProblems(page)).toEqual([]);
    const downloading = page.waitForEvent("download");
    await page.locator("a", { hasText: "JSON Lines" }).click();
    const file = readFileSync(await (await downloading).path(), "utf8");
    expect(JSON.parse(file)).toMatchObject({ state: "retrying", event: "connected_account.approved" });
    merchant.fail(null);
    await page.locator("#select-page").check();
    await page.locator("#selection button", { hasText: "Try now…" }).click();
    await page.locator("#decide-what", { hasText: "The next attempt is made now." }).waitFor();
    expect(await seriousProblems(page)).toEqual([]);
    await picture(page, `console-retry-${name}`);
    await page.locator("#note").fill("The bank is back.");
    await page.locator("#confirm", { hasText: "Try now" }).click();
    await page.locator("#toast", { hasText: "1 made due" }).waitFor();
    await page.locator(".empty", { hasText: "No event that matches is retrying." }).waitFor();
  });

  it("runs events again that have ended, all that match, and says what runs", async () => {
    const merchant = await merchantOn(memoryInbox(), { keep: { signedTextMs: 86_400_000 } });
    for (const n of [1, 2, 3]) await merchant.callback({ referenceId: `order-${n}`, amount: `${n}0.000000` });
    await expect.poll(() => merchant.credited).toHaveLength(3);
    const page = await browser.open(`${merchant.url}?state=finished&min=15`, size);
    await live(page);
    await page.locator("#select-all").check();
    await page.locator("#selection button", { hasText: "Replay…" }).click();
    await page.locator("#decide-what", { hasText: "2 of 2 events" }).waitFor();
    expect(await page.locator("#planned").textContent()).toMatch(
      /Handlers that run again[\s\S]*deposit 2[\s\S]*Effects that are there are skipped[\s\S]*Runs deposit again\./,
    );
    expect(await overflow(page)).toBe(0);
    expect(await seriousProblems(page)).toEqual([]);
    await pictures(page, "console-again", name);
    const handler = page.locator('#planned input[name="handler"]');
    await handler.uncheck();
    await page.locator("#confirm:disabled", { hasText: "Run again (0)" }).waitFor();
    await handler.check();
    await page.locator('#planned input[name="repeatEffects"]').check();
    await page.locator("#note").fill("The ledger had lost them.");
    await page.locator("#confirm", { hasText: "Run again (2)" }).click();
    await page.locator("#toast", { hasText: "2 replayed: 2 finished" }).waitFor();
    expect(merchant.credited.toSorted()).toEqual(["order-1", "order-2", "order-2", "order-3", "order-3"]);
  });

  it("decides about many at once, shows how far it has come, and what failed", async () => {
    const merchant = await merchantOn();
    merchant.fail("the ledger is away");
    for (let n = 0; n < 60; n++) await merchant.callback({ referenceId: `order-${n}` });
    const page = await browser.open(merchant.url, size);
    await live(page);
    await heldCount(page, 60);
    merchant.fail(null);
    await page.locator("#select-all").check();
    expect(await page.locator("#selected").textContent()).toBe("all that match");
    await page.locator("#selection button", { hasText: "Replay…" }).click();
    await page.locator("#decide-what", { hasText: "60 of 60 events" }).waitFor();
    await page.locator("#note").fill("The ledger is back.");
    await page.locator("#confirm", { hasText: "Replay (60)" }).click();
    await page.locator("#toast", { hasText: "60 replayed: 60 finished" }).waitFor();
    await heldCount(page, 0);
    expect(merchant.credited).toHaveLength(60);

    merchant.fail("the ledger is away again");
    for (const reference of ["order-a", "order-b"]) await merchant.callback({ referenceId: reference });
    await heldCount(page, 2);
    await page.locator("#select-page").check();
    expect(await page.locator("#selected").textContent()).toBe("2 selected");
    await page.locator("#selection button", { hasText: "Discard…" }).click();
    await page.locator("#decide-what", { hasText: "2 of 2 events" }).waitFor();
    await merchant.discardOne();
    await page.locator("#note").fill("Paid by hand.");
    await page.locator("#confirm").click();
    await page.locator("#progress-text", { hasText: "1 discarded, 1 failed" }).waitFor();
    expect(await page.locator("#failures li").textContent()).toContain("no longer held");
    await page.locator("#cancel", { hasText: "Close" }).click();
    await heldCount(page, 0);
    expect(browser.problems.splice(0)).toEqual([expect.stringContaining("404")]);
  });
});

describe("a page that gets other answers than it asked for", () => {
  const LOGIN = { contentType: "text/html", body: "<form>Sign in</form>" };

  it.each([
    ["a login page", LOGIN],
    ["JSON without a list", { json: { ok: true } }],
    ["the failure of a proxy", { status: 502, body: "Bad gateway" }],
  ])("decides nothing about all that match when %s comes instead of what they are", async (_what, answer) => {
    const merchant = await merchantOn();
    merchant.fail("the ledger is away");
    await merchant.callback({ referenceId: "order-1" });
    const page = await browser.open(merchant.url);
    await live(page);
    await heldCount(page, 1);
    await page.route(
      (url) => url.search === "",
      (route) => (route.request().method() === "POST" ? route.fulfill(answer) : route.fallback()),
    );
    await page.locator("#select-all").check();
    await page.locator("#selection button", { hasText: "Discard…" }).click();
    const text = "The events could not be read: nothing was decided.";
    await page.locator("#decide-what", { hasText: text }).waitFor();
    expect(await page.locator("#confirm").isVisible()).toBe(false);
    await page.locator("#cancel", { hasText: "Close" }).click();
    await page.locator("#decide").waitFor({ state: "hidden" });
    expect(await page.locator("#tile-held .number").textContent()).toBe("1");
    const problems = browser.problems.splice(0);
    expect(problems).toEqual("status" in answer ? [expect.stringContaining("502")] : []);
  });

  const FAILED = { ok: false, message: "Something went wrong. The server's log says where." };

  it.each([
    ["a login page", LOGIN, "You may have been signed out: load it again."],
    [
      "a refusal",
      { status: 401, json: { error: "unauthorized" } },
      "You may have been signed out: load it again.",
    ],
    ["the console's failure", { status: 500, json: FAILED }, FAILED.message],
    ["the failure of a proxy", { status: 502, body: "Bad gateway" }, "The server failed: it answered 502."],
    ["the failure of another program", { status: 500, json: {} }, "The server failed: it answered 500."],
  ])("says why it is not up to date after %s, until it is again", async (_what, answer, why) => {
    const merchant = await merchantOn();
    merchant.fail("the ledger is away");
    const page = await browser.open(merchant.url);
    await live(page);
    await page.route(/part=regions/, (route) => route.fulfill(answer));
    await merchant.callback({ referenceId: "order-1" });
    const problem = page.locator("#problem", { hasText: "The page could not be updated." });
    await problem.waitFor();
    expect(await problem.textContent()).toBe(`The page could not be updated. ${why}`);
    expect(await page.locator("#live").textContent()).toBe("not up to date");
    await page.unroute(/part=regions/);
    await merchant.callback({ referenceId: "order-2" });
    await heldCount(page, 2);
    await live(page);
    await page.locator("#problem").waitFor({ state: "hidden" });
    for (const said of browser.problems.splice(0))
      expect(said).toContain("status" in answer ? `${answer.status}` : "");
  });
});

describe("without a mouse", () => {
  it("an event is found, read and replayed by the keyboard alone", async () => {
    const merchant = await merchantOn();
    merchant.fail("the ledger is away");
    for (const reference of ["order-1", "order-2"]) await merchant.callback({ referenceId: reference });
    const page = await browser.open(merchant.url);
    await live(page);
    await heldCount(page, 2);
    merchant.fail(null);
    const press = (key: string) => page.keyboard.press(key);
    const focusedId = () => page.evaluate<string>("document.activeElement.id");
    const tabTo = async (id: string) => {
      for (let n = 0; n < 60 && (await focusedId()) !== id; n++) await press("Tab");
      expect(await focusedId()).toBe(id);
    };
    // The first stop leads past the counts.
    await press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("To the events");
    await press("Enter");
    expect(await focusedId()).toBe("main");
    await tabTo("search");
    await page.keyboard.type("order-2");
    await press("Enter");
    await page.locator("#events-title", { hasText: "Found for order-2" }).waitFor();
    await live(page);
    const event = (await page.locator(".event").getAttribute("id")) ?? "";
    await tabTo(event);
    await press("Enter");
    await page.locator("#event-title").waitFor();
    await live(page);
    await tabTo("back");
    await press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Replay…");
    await press("Enter");
    expect(await focusedId()).toBe("note");
    // Escape leaves everything as it was, and the focus where it was.
    await press("Escape");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Replay…");
    await press("Enter");
    // The browser tells of a close a little later: by then the dialog may be open again.
    await page.evaluate(
      "document.getElementById('cancel').click(); document.querySelector('[data-decide=replay]').click()",
    );
    await page.keyboard.type("The ledger is back.");
    // The button waits for what will run.
    await page.locator("#confirm:enabled").waitFor();
    await tabTo("confirm");
    await press("Enter");
    await page.locator("#eventPage .pill.good", { hasText: "done" }).first().waitFor();
    await expect.poll(() => merchant.credited).toEqual(["order-2"]);
    await expect.poll(() => page.evaluate("document.activeElement !== document.body")).toBe(true);
  });
});

describe("an open page", () => {
  it("keeps what somebody has chosen and is at, while others decide and events come in", async () => {
    const merchant = await merchantOn();
    merchant.fail("the ledger is away");
    for (const reference of ["order-1", "order-2"]) await merchant.callback({ referenceId: reference });
    const page = await browser.open(merchant.url);
    await live(page);
    await heldCount(page, 2);
    const pick = page.locator("input.pick").last();
    await pick.check();
    await pick.focus();
    const id = await pick.getAttribute("id");
    await merchant.callback({ referenceId: "order-3" });
    await heldCount(page, 3);
    await page.locator(".event", { hasText: "order-3" }).waitFor();
    expect(await page.locator(`#${id}`).isChecked()).toBe(true);
    expect(await page.evaluate("document.activeElement.id")).toBe(id);
    expect(await page.locator("#selected").textContent()).toBe("1 selected");
    await expect.poll(() => page.locator("#said").textContent()).toBe("3 held");
  });

  it("shows times in the viewer's zone as well, with their day where it is another one", async () => {
    const merchant = await merchantOn();
    const page = await browser.open(merchant.url);
    await live(page);
    expect(await page.locator("#zones").textContent()).toBe("Times: UTC / yours (GMT+3)");
    const times = ["2026-11-24T20:30:00.000Z", "2026-11-24T22:30:00.000Z"];
    const log = times.map((time) => `<time datetime="${time}">UTC</time>`).join("");
    await page.route(/part=regions/, (route) => route.fulfill({ json: { regions: { log }, problem: null } }));
    await merchant.callback({ referenceId: "order-1" });
    await expect
      .poll(() => page.locator("#log time").allTextContents())
      .toEqual(["UTC / 23:30:00", "UTC / 25 Nov 01:30:00"]);
  });

  it("runs nothing that an event says", async () => {
    const merchant = await merchantOn();
    const hostile = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>\u202e`;
    merchant.fail(hostile);
    await merchant.callback({ referenceId: hostile, message: hostile });
    const page = await browser.open(merchant.url);
    await live(page);
    await heldCount(page, 1);
    await page.locator(".event").click();
    await live(page);
    expect(await page.locator("#eventPage").textContent()).toContain("<img src=x");
    expect(await page.title()).not.toBe("hacked");
  });

  it("tells whoever may no longer see it, and shows nothing new", async () => {
    const merchant = await merchantOn();
    const page = await browser.open(merchant.url);
    await live(page);
    merchant.lockOut();
    merchant.fail("the ledger is away");
    await merchant.callback({ referenceId: "order-1" });
    await page.locator("#problem", { hasText: "no longer see" }).waitFor();
    expect(await page.locator(".event").count()).toBe(0);
    for (const problem of browser.problems.splice(0)) expect(problem).toContain("403");
  });
});
