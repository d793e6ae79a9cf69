import type { AddressInfo } from "node:net";
import { createClient } from "@payhooks/client";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { paymentCallbacks } from "@payhooks/express";
import { createSandbox, type Sandbox } from "@payhooks/sandbox";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../support/silent.ts";
import { RunningProgram } from "./program.ts";

/** The two ways to have the sandbox attack: each makes the payment of a customer who forges. */
const attacks: readonly (readonly [string, string, (sandbox: Sandbox) => void])[] = [
  ["a deposit sbx-forged", "sbx-forged-7", (sandbox) => sandbox.deposit({ reference: "sbx-forged-7" })],
  [
    "the fault resplit on any deposit",
    "order-7",
    (sandbox) => {
      sandbox.faults.add("resplit");
      sandbox.deposit({ reference: "order-7", outcome: "SUCCESS" });
    },
  ],
];

describe.each(attacks)("the forgery of the sandbox, %s", (_, reference, attack) => {
  it("is credited by a receiver that only checks the signature", async () => {
    const sandbox = await startSandbox();
    const env = { PAY_PUBLIC_KEY: sandbox.keys.publicKey, PORT: "0" };
    const victim = new RunningProgram("examples/express/src/victim.ts", [], env);
    onTestFinished(() => victim.kill());
    const [, port] = await victim.until(/listening on port (\d+)\n/);
    attack(redirected(sandbox, `http://127.0.0.1:${port}/callbacks/pay`));
    await victim.until(new RegExp(`^credited 10\\.000000 for ${reference}$`, "m"));
    expect(sandbox.transactions.byReference(reference)?.transaction.status).toBe("FAILED");
  });

  it("is held by a receiver of Payhooks: the payment has failed at the service", async () => {
    const sandbox = await startSandbox();
    const [publicKey, secretKey] = sandbox.keys.apiKey.split(":");
    const client = createClient({ baseUrl: sandbox.url, publicKey, secretKey, allowHttpLoopback: true });
    const receiver = createReceiver({
      payments: { publicKey: sandbox.keys.publicKey },
      inbox: memoryInbox(),
      logger: silent,
    });
    const credited: string[] = [];
    receiver.onDeposit((deposit) => void credited.push(deposit.referenceId));
    const server = express().use("/callbacks/pay", paymentCallbacks(receiver)).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    onTestFinished(async () => {
      server.close();
      server.closeAllConnections();
      await receiver.close();
    });
    const { port } = server.address() as AddressInfo;
    attack(redirected(sandbox, `http://127.0.0.1:${port}/callbacks/pay`));
    const { deduplicationKey: id } = await sandbox.deliveries.waitFor({ reference, state: "delivered" });
    expect(await client.transactionById(id)).toMatchObject({ reference, status: "FAILED" });
    expect(credited).toEqual([]);
    expect((await receiver.health()).held).toBe(1);
  });
});

async function startSandbox(): Promise<Sandbox> {
  const sandbox = await createSandbox({ delayMs: 0 });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** The same sandbox, whose deposits announce themselves at this address. */
function redirected(sandbox: Sandbox, callbackUrl: string): Sandbox {
  return { ...sandbox, deposit: (input) => sandbox.deposit({ callback_url: callbackUrl, ...input }) };
}
