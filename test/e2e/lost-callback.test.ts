import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestKeys } from "@payhooks/core/testing";
import { createSandbox } from "@payhooks/sandbox";
import { expect, it, onTestFinished } from "vitest";
import { RunningProgram } from "./program.ts";

const keys = createTestKeys();
const REFERENCE = "order-lost";

it("a callback that the service drops for good is found by one of two processes, and its handler runs once although it comes later after all", {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-lost-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const sandbox = await createSandbox({
    delayMs: 0,
    merchant: { privateKey: keys.privateKey },
    // Nobody listens there, and it is tried once.
    callbackUrl: "http://127.0.0.1:1/callbacks/pay",
    retry: { maxAttempts: 1 },
  });
  onTestFinished(() => sandbox.close());
  sandbox.deposit({ reference: REFERENCE, amount: "10.50" });
  const lost = await sandbox.deliveries.waitFor({ reference: REFERENCE, state: "gave-up" });

  const env = { SHOP_API_KEY: sandbox.keys.apiKey, SHOP_PUBLIC_KEY: keys.publicKey };
  const args = [join(folder, "inbox.db"), sandbox.url, REFERENCE];
  const shops = [0, 1].map(() => new RunningProgram("test/e2e/watching-shop.ts", args, env));
  onTestFinished(() => {
    for (const shop of shops) shop.kill();
  });
  const ports = await Promise.all(shops.map((shop) => shop.until(/listens on (\d+)/)));
  await Promise.race(shops.map((shop) => shop.until(/handled order-lost by lookup/)));
  // Both have had time for rounds of their own.
  await Promise.race(shops.map((shop) => shop.until(/(?:looked up: duplicate\s[\s\S]*){2}/)));

  for (const [, port] of ports) {
    const answer = await fetch(`http://127.0.0.1:${port}/callbacks/pay`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: lost.attempts[0]?.body ?? "",
    });
    expect(answer.status).toBe(200);
  }
  for (const shop of shops) {
    const closed = shop.until(/closed/);
    shop.signal("SIGTERM");
    await closed;
  }
  const lines = shops.flatMap(({ output }) => output.split("\n"));
  expect(lines.filter((line) => line.startsWith("handled"))).toEqual([`handled ${REFERENCE} by lookup`]);
  expect(lines.filter((line) => line === "looked up: new")).toHaveLength(1);
  expect(await Promise.all(shops.map(({ exitCode }) => exitCode))).toEqual([0, 0]);
});
