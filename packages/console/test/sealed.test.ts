/** The console over an inbox that is sealed with a key which its receiver does not have. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { aesGcm } from "@payhooks/core/seal";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { expect, it, onTestFinished } from "vitest";
import { consoleFixture } from "./support/console-fixture.ts";

it("the console says that there are events which cannot be read, and does not say that there are none", async () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-console-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "inbox.db");
  const seal = aesGcm([{ id: "2026-11", key: randomBytes(32) }]);
  const sealed = await consoleFixture({}, 1, () => {}, sqliteInbox(path, { seal }));
  sealed.words = "the bank is away";
  await sealed.callback({ referenceId: "order-1" });
  await sealed.callback({ referenceId: "order-2" });
  sealed.words = null;
  await sealed.callback({ referenceId: "order-3" });
  const open = await (await sealed.open()).get("?state=held");
  expect(open.text).toContain("order-1");
  expect(open.text).not.toContain("cannot be read");
  await sealed.receiver.close();

  const page = await (await consoleFixture({}, 1, () => {}, sqliteInbox(path))).open();
  const held = await page.get("?state=held");
  expect(held.status).toBe(200);
  expect(held.text).toMatch(
    /role="alert"\s*>2 events are missing here\. A record cannot be read: it is sealed/,
  );
  expect(held.text).not.toContain("Nothing is held.");
  const found = await page.get("?search=order-1");
  expect(found.text).toContain("Events may be missing");
  expect(found.text).not.toContain("Nothing is known under this reference or id.");
  expect((await page.get("?state=held&download=csv")).status).toBe(503);
  for (const [query, missing] of [
    ["?state=held", "2 events are missing"],
    ["?state=finished", "1 event is missing"],
  ] as const) {
    const preview = await page.preview({ query });
    expect(preview.events).toEqual([]);
    expect(preview.html).toContain(`${missing} here. A record cannot be read: it is sealed`);
  }
});
