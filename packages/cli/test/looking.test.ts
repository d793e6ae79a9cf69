import { join } from "node:path";
import { createReceiver, type Receiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  createTestKeys,
  resplitPair,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { folder } from "./support/files.ts";
import { payhooks } from "./support/run.ts";

const keys = createTestKeys();
let databases = 0;

/** An application on an inbox in a file: order-1 is done at its second attempt, order-2 is ambiguous, order-3 fails. */
async function application(): Promise<{ readonly database: string }> {
  const database = join(folder, `looking ${++databases}.db`);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(database),
    run: "after-response",
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  });
  receiver.onDeposit(
    ({ referenceId }, { attempt }) => {
      if (referenceId === "order-3" || attempt === 1) throw new Error("the bank is down");
    },
    { backoffMs: () => 1, maxAttempts: 2 },
  );
  await receiver.start();
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const callback = (referenceId: string) =>
    signPaymentCallback(callbackFields({ referenceId, payTxnId: `tx-${referenceId}` }), keys.privateKey);
  await deliver(receiver, callback("order-1"));
  await deliver(receiver, resplitPair("order-2", keys.privateKey).forged);
  await deliver(receiver, callback("order-3"));
  await expect
    .poll(async () => {
      await receiver.work();
      const { waiting, retrying } = await receiver.health();
      return [waiting, retrying];
    })
    .toEqual([0, 0]);
  return { database };
}

async function deliver(receiver: Receiver, { headers, rawBody }: SignedDelivery): Promise<void> {
  const work: Promise<unknown>[] = [];
  const reply = await receiver.payments.receive({
    method: "POST",
    url: "/callbacks",
    headers: { get: (name) => headers[name] ?? null },
    rawBody,
    waitUntil: (promise) => work.push(promise),
  });
  expect(reply.status).toBe(200);
  await Promise.all(work);
}

describe("payhooks find", () => {
  it("shows what became of a payment, by its reference or its transaction", async () => {
    const { database } = await application();
    for (const query of [
      ["--reference", "order-1"],
      ["--transaction", "tx-order-1"],
    ]) {
      const { code, stdout, stderr } = await payhooks(["find", ...query, "--sqlite", database]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(
        /^[0-9a-f]{48} {2}finished {2}DEPOSIT SUCCESS tx-order-1 reference order-1 {2}2/,
      );
      expect(stdout).toMatch(/failed \(deposit, attempt 1\): Error: the bank is down/);
      expect(stdout).toMatch(/Z done\n$/);
    }
  });

  it("finds an entry that can be read in several ways, and prints JSON", async () => {
    const { database } = await application();
    const { code, stdout } = await payhooks([
      "find",
      "--reference",
      "order-2",
      "--sqlite",
      database,
      "--json",
    ]);
    expect(code).toBe(0);
    const [found, ...others] = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ state: "held", reason: "ambiguous", referenceId: null, copies: 0 });
    expect(found).not.toHaveProperty("delivery");
  });

  it("ends with 1 when nothing is found", async () => {
    const { database } = await application();
    const found = await payhooks(["find", "--reference", "order-4", "--sqlite", database]);
    expect(found).toMatchObject({ code: 1, stdout: "Nothing was found.\n" });
  });

  it.each([
    [["find"], "Give one of --reference, --transaction and --webhook."],
    [["find", "--reference", "a", "--webhook", "b"], "Give one of"],
    [["find", "--reference", ""], "--reference must not be empty"],
  ])("%j is refused", async (args, text) => {
    const { code, stderr } = await payhooks([...args, "--sqlite", "nowhere.db"]);
    expect(code).toBe(2);
    expect(stderr).toContain(text);
  });
});

describe("payhooks events", () => {
  it("lists what is not finished, or what is, from either end", async () => {
    const { database } = await application();
    const listed = async (...args: readonly string[]) =>
      (await payhooks(["events", ...args, "--sqlite", database, "--json"])).stdout
        .split("\n")
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { referenceId: string | null }).referenceId);
    expect(await listed()).toEqual([null, "order-3"]);
    expect(await listed("--newest")).toEqual(["order-3", null]);
    expect(await listed("--newest", "--limit", "1")).toEqual(["order-3"]);
    expect(await listed("--state", "finished")).toEqual(["order-1"]);
    expect(await listed("--reference", "order-3", "--since", "2020-01-01")).toEqual(["order-3"]);
    expect(await listed("--until", "2020-01-01T00:00:00Z")).toEqual([]);
    const text = await payhooks(["events", "--sqlite", database, "--limit", "1"]);
    expect(text.stdout).toMatch(
      /held: ambiguous[\s\S]*\n1 event, and there may be more: --limit shows them\.\n$/,
    );
  });

  it("counts by state and reason", async () => {
    const { database } = await application();
    const { stdout } = await payhooks(["events", "--count", "--sqlite", database]);
    expect(stdout).toMatch(/^waiting +0\nretrying +0\nrunning +0\nheld +2\n/);
    expect(stdout).toMatch(/ {2}ambiguous: 1\n/);
    expect(stdout).toMatch(/ {2}exhausted: 1\n/);
    const json = await payhooks(["events", "--count", "--sqlite", database, "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ held: 2, heldBy: { ambiguous: 1, exhausted: 1 } });
  });

  it.each([
    [["--since", "yesterday"], "--since must be a time such as"],
    [["--state", "heldd"], "Did you mean held?"],
    [["--count", "--state", "held"], "--count counts everything: leave --state out."],
  ])("%j is refused", async (args, text) => {
    const { code, stderr } = await payhooks(["events", ...args, "--sqlite", "nowhere.db"]);
    expect(code).toBe(2);
    expect(stderr).toContain(text);
  });
});
