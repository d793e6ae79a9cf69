import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@payhooks/client";
import { createReceiver } from "@payhooks/core";
import { fakeClock } from "@payhooks/core/testing";
import { paymentCallbacks } from "@payhooks/express";
import { createSandbox } from "@payhooks/sandbox";
import express from "express";
import { expect, it } from "vitest";

it("a key is rotated without a restart: the new one gets in, and the old one is refused after its end", async () => {
  const folder = await mkdtemp(join(tmpdir(), "payhooks-rotation-"));
  const file = join(folder, "pay.pem");
  const sandbox = await createSandbox({ delayMs: 0 });
  const oldKey = sandbox.keys.publicKey;
  await writeFile(file, oldKey);
  const clock = fakeClock();
  const receiver = createReceiver({
    payments: { publicKey: { read: async () => (await readFile(file, "utf8")).split("\n\n") } },
    run: "after-response",
    clock,
  });
  const ran: string[] = [];
  receiver.onDeposit((deposit) => void ran.push(deposit.referenceId));
  await receiver.start();
  const server = express().use("/pay", paymentCallbacks(receiver)).listen(0, "127.0.0.1");
  try {
    await new Promise((resolve) => server.once("listening", resolve));
    const callback_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pay`;
    const [publicKey, secretKey] = sandbox.keys.apiKey.split(":");
    const client = createClient({ baseUrl: sandbox.url, publicKey, secretKey, allowHttpLoopback: true });
    const answerTo = async (reference: string) => {
      const order = { amount: "10.50", currency: "ETB", phone_number: "251911234567", callback_url } as const;
      await client.pay({ ...order, medium: "TELEBIRR", reference });
      await sandbox.deliveries.waitFor({ reference });
      await expect.poll(() => sandbox.deliveries.list({ reference })[0]?.attempts.length).toBe(1);
      return sandbox.deliveries.list({ reference })[0]?.attempts[0]?.answer?.status;
    };
    expect(await answerTo("before")).toBe(200);

    await sandbox.keys.rotate();
    await writeFile(file, `${oldKey}\n\n${sandbox.keys.publicKey}`);
    expect(await answerTo("between")).toBe(200);

    // The old key ends, and the service has signed one callback with it that is still on its way.
    await writeFile(file, sandbox.keys.publicKey);
    await clock.advance("2m");
    const [late] = sandbox.deliveries.list({ reference: "before" });
    const again = sandbox.deliveries.replay(late?.id ?? "");
    await expect.poll(() => sandbox.deliveries.get(again.id)?.attempts[0]?.answer?.status).toBe(401);
    expect(await answerTo("after")).toBe(200);
    expect(ran).toEqual(["before", "between", "after"]);
  } finally {
    server.close();
    server.closeAllConnections();
    await Promise.all([sandbox.close(), receiver.close(), rm(folder, { recursive: true })]);
  }
});
