import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestKeys } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { removeFolder } from "../../../test/support/remove-folder.ts";
import { keys, notFound, payment, wireTransaction } from "./fixtures.ts";
import { json, startService } from "./service.ts";

const textOf = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

/** The programs of the README, imported anew with an environment of their own. */
async function inEnvironment<T>(url: string, load: () => Promise<T>): Promise<T> {
  vi.resetModules();
  vi.stubEnv("PAY_BASE_URL", url);
  vi.stubEnv("PAY_API_PUBLIC_KEY", keys.publicKey);
  vi.stubEnv("PAY_API_SECRET_KEY", keys.secretKey);
  vi.stubEnv("PAY_CONNECT_API_KEY", "ak_1");
  const folder = mkdtempSync(join(tmpdir(), "payhooks-readme-"));
  onTestFinished(() => removeFolder(folder));
  vi.stubEnv("PAYHOOKS_FILE", join(folder, "payhooks.db"));
  try {
    return await load();
  } finally {
    vi.unstubAllEnvs();
  }
}

describe("the README", () => {
  it("shows programs that are files of this test, to the letter", () => {
    const blocks = [...textOf("../README.md").matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text]) => text);
    expect(blocks).toEqual(["pay", "reconcile", "settings"].map((name) => textOf(`readme/${name}.ts`)));
  });

  it("has a payment that is sent once, and may have an unknown outcome", async () => {
    const service = await startService((response, seen, count) =>
      count === 1 ? json({ success: true })(response, seen, count) : response.destroy(),
    );
    const { charge } = await inEnvironment(service.url, () => import("./readme/pay.ts"));
    expect(await charge("order-1", "10.50", payment.phone_number)).toBe("sent");
    expect(await charge("order-2", "10.50", payment.phone_number)).toBe("unknown");
    await expect(charge("order-3", "10.5", payment.phone_number)).rejects.toMatchObject({
      code: "ERR_AMOUNT_INVALID",
    });
    expect(service.seen).toHaveLength(2);
  });

  it("has a reconciliation that runs handlers for what it finds", async () => {
    const updated_at = new Date().toISOString();
    const service = await startService((response, seen, count) => {
      const known = seen.path.endsWith("/order-1");
      json(known ? { success: true, data: { ...wireTransaction, updated_at } } : notFound)(
        response,
        seen,
        count,
      );
    });
    vi.stubEnv("PAY_PUBLIC_KEY", createTestKeys().publicKey);
    const { receiver, reconcileOrders } = await inEnvironment(
      service.url,
      () => import("./readme/reconcile.ts"),
    );
    onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
    const credited = new Promise((resolve) =>
      receiver.observe(({ type }) => type === "done" && resolve(type)),
    );
    const printed = vi.spyOn(console, "log").mockImplementation(() => {});
    onTestFinished(() => printed.mockRestore());
    await receiver.start();
    expect(await reconcileOrders(["order-1", "order-2"])).toEqual([]);
    await credited;
    expect(printed).toHaveBeenCalledWith("credit once:", "order-1", "10.5", expect.any(String));
  });

  it("has webhook settings that are sent", async () => {
    const service = await startService(json({ success: true }));
    const { register } = await inEnvironment(service.url, () => import("./readme/settings.ts"));
    await register("whsec_0123456789abcdef");
    expect(service.seen).toMatchObject([{ method: "PUT" }]);
  });
});
