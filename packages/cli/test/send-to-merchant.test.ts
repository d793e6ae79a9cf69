import { join } from "node:path";
import { createReceiver, type Receiver, type StoredEvent } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { createTestKeys } from "@payhooks/core/testing";
import { paymentCallbacks } from "@payhooks/express";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { file, folder } from "./support/files.ts";
import { listen } from "./support/receivers.ts";
import { payhooks } from "./support/run.ts";

const keys = createTestKeys();
const privateKey = file(keys.privateKey, "private.pem");
const MERCHANT = "5a1c3a52-8f2e-4f0e-9c51-7d0a3b1c2d4e";
const state = file(
  JSON.stringify({ privateKey: keys.privateKey, merchant: { merchantId: MERCHANT } }),
  "state.json",
);

let inboxes = 0;

/** A receiver that expects one merchant, as the documentation recommends, on an inbox in a file. */
async function application(): Promise<{
  url: string;
  ran: string[];
  held: () => Promise<StoredEvent[]>;
}> {
  const database = join(folder, `merchant ${++inboxes}.db`);
  const receiver: Receiver = createReceiver({
    payments: { publicKey: keys.publicKey, expect: { merchantId: MERCHANT } },
    inbox: sqliteInbox(database),
    logger: silent,
  });
  const ran: string[] = [];
  const run = ({ referenceId }: { readonly referenceId: string }): void => void ran.push(referenceId);
  receiver.onDeposit({ SUCCESS: run, FAILED: run, PENDING: run });
  const app = express().use("/hook", paymentCallbacks(receiver));
  await receiver.start();
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const url = await listen(app);
  const held = async (): Promise<StoredEvent[]> => {
    const list: StoredEvent[] = [];
    for await (const entry of eachEvent(receiver.events, { state: "held" })) list.push(entry);
    return list;
  };
  return { url, ran, held };
}

describe("payhooks send, to a receiver that expects one merchant", () => {
  it("runs with the merchant of the state, of the option and of the environment", async () => {
    const { url, ran, held } = await application();
    const send = (reference: string, args: string[], env = {}) =>
      payhooks(["send", "deposit", "--to", url, "--reference", reference, ...args], { env });
    const other = { PAY_MERCHANT_ID: "another" };
    expect((await send("by-state", ["--state", state], other)).code).toBe(0);
    const key = ["--private-key", privateKey];
    expect((await send("by-option", [...key, "--merchant-id", MERCHANT], other)).code).toBe(0);
    const ended = await send("by-environment", key, { PAY_MERCHANT_ID: MERCHANT });
    expect(ended.stdout).toContain("A 2xx means received: the event may have run, or it may be held.");
    expect(ended.stdout).not.toContain("made up");
    await expect.poll(() => ran).toEqual(["by-state", "by-option", "by-environment"]);
    expect(await held()).toEqual([]);
  });

  it("says that a 200 may mean held, and why, when the merchant is made up", async () => {
    const { url, held } = await application();
    const ended = await payhooks(["send", "deposit", "--to", url, "--private-key", privateKey]);
    expect(ended.stdout).toMatch(
      /→ 200 [\s\S]*A 2xx means received: .*held[\s\S]*The merchantId was made up\. .* --merchant-id/,
    );
    expect((await held()).map(({ reason }) => reason)).toEqual(["unexpected"]);
  });

  it("says that a re-split forgery must be held", async () => {
    const { url, ran, held } = await application();
    const args = ["send", "deposit", "--to", url, "--state", state, "--forge", "resplit"];
    const ended = await payhooks(args);
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("This forgery must be held") });
    expect((await held()).map(({ reason }) => reason)).toEqual(["ambiguous"]);
    expect(ran).toEqual([]);
  });
});
