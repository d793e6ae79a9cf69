import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const ARGUMENTS = [
  "--no-sandbox",
  "--headless",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const DESKTOP: { width: number; height: number } = { width: 1280, height: 800 };
export const PHONE: { width: number; height: number } = { width: 375, height: 812 };
/** Three hours before UTC, all year. */
const TIME_ZONE = "Africa/Addis_Ababa";

/** A Chromium with a profile of its own, and everything that went wrong in its pages. */
export interface TestBrowser {
  open(url: string, size?: { width: number; height: number }): Promise<Page>;
  /** Errors of scripts, of the content security policy and of loading. */
  readonly problems: string[];
  /** Before the sandboxes of a test end, whose live events the pages would miss. */
  closePages(): Promise<void>;
  close(): Promise<void>;
}

/** Debian's Chromium; `PAYHOOKS_CHROMIUM` names another. */
export async function startChromium(): Promise<TestBrowser> {
  const profile = mkdtempSync(join(tmpdir(), "payhooks-chromium-"));
  const executablePath = process.env.PAYHOOKS_CHROMIUM ?? "/usr/bin/chromium";
  const context: BrowserContext = await chromium.launchPersistentContext(profile, {
    executablePath,
    args: ARGUMENTS,
    timezoneId: TIME_ZONE,
  });
  const problems: string[] = [];
  return {
    problems,
    async open(url, size = DESKTOP) {
      const page = await context.newPage();
      page.on("pageerror", (error) => problems.push(String(error)));
      page.on("console", (message) => {
        if (message.type() === "error") problems.push(message.text());
      });
      page.on("dialog", (dialog) => void dialog.accept());
      await page.setViewportSize(size);
      await page.goto(url);
      return page;
    },
    async closePages() {
      for (const page of context.pages().slice(1)) await page.close();
    },
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** Keeps a picture, of the whole page or of what is in sight, where `PAYHOOKS_SCREENSHOTS` names a folder for them. */
export async function picture(
  page: Page,
  name: string,
  { isWhole = true }: { readonly isWhole?: boolean } = {},
): Promise<void> {
  const folder = process.env.PAYHOOKS_SCREENSHOTS;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: isWhole });
}
