import { join } from "node:path";
import { createReceiver, type Receiver, type ReceiverOptions, type StoredEvent } from "@payhooks/core";
import { eachEvent, HELD_REASONS } from "@payhooks/core/inbox";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { createTestKeys } from "@payhooks/core/testing";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { heldFindings } from "../src/doctor/left-behind.ts";
import { file, folder } from "./support/files.ts";
import { listen } from "./support/receivers.ts";
import { payhooks } from "./support/run.ts";

const keys = createTestKeys();
const privateKey = file(keys.privateKey, "private.pem");
const secret = "whsec_0123456789abcdef";
const MERCHANT = "5a1c3a52-8f2e-4f0e-9c51-7d0a3b1c2d4e";
const state = file(
  JSON.stringify({ privateKey: keys.privateKey, merchant: { merchantId: MERCHANT } }),
  "state.json",
);

let inboxes = 0;

/** A receiver that expects one merchant, as the documentation recommends, on an inbox in a file. */
async function application(more: Partial<ReceiverOptions["payments"]> = {}): Promise<{
  url: string;
  connectUrl: string;
  database: string;
  ran: string[];
  held: () => Promise<StoredEvent[]>;
}> {
  const database = join(folder, `left behind ${++inboxes}.db`);
  const receiver: Receiver = createReceiver({
    payments: { publicKey: keys.publicKey, expect: { merchantId: MERCHANT }, ...more },
    connect: { secret },
    inbox: sqliteInbox(database),
    logger: silent,
  });
  const ran: string[] = [];
  const run = ({ referenceId }: { readonly referenceId: string }): void => void ran.push(referenceId);
  receiver.onDeposit({ SUCCESS: run, FAILED: run, PENDING: run });
  receiver.onConnectedAccountDeclined(() => {}).onSettlementDeclined(() => {});
  const app = express().use("/hook", paymentCallbacks(receiver)).use("/connect", connectWebhooks(receiver));
  await receiver.start();
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  const url = await listen(app);
  const held = async (): Promise<StoredEvent[]> => {
    const list: StoredEvent[] = [];
    for await (const entry of eachEvent(receiver.events, { state: "held" })) list.push(entry);
    return list;
  };
  return { url, connectUrl: url.replace("/hook", "/connect"), database, ran, held };
}

const who = ["--by", "amina", "--note", "payhooks doctor"];

describe("what payhooks doctor leaves behind", () => {
  it("is named where an inbox is given: every held entry, why, and how to discard it", async () => {
    const { url, database, ran, held } = await application();
    const ended = await payhooks(["doctor", url, "--private-key", privateKey, "--sqlite", database]);
    expect(ended).toMatchObject({ code: 1, stderr: "" });
    expect(ended.stdout).toMatch(
      /✗ held {2}It answers 11 genuine deliveries with 2xx, and holds them\. unexpected: merchantId is none of/,
    );
    expect(ended.stdout).not.toContain("Nothing is wrong");
    expect(ran).toEqual([]);
    const entries = await held();
    expect(entries).toHaveLength(11);
    for (const { eventId } of entries) expect(ended.stdout).toContain(`    ${eventId}  unexpected  `);
    expect(ended.stdout).toMatch(/ unexpected {2}FAILED after PENDING\n/);

    const [, id = "", reasons = "", path] =
      /discard --all --id-prefix (\S+) --reason (\S+) --sqlite "(.+)" --by NAME/.exec(ended.stdout) ?? [];
    expect(path).toBe(database);
    const named = ["--all", "--id-prefix", id, "--reason", reasons, "--sqlite", database];
    const discarded = await payhooks(["events", "discard", ...named, ...who, "--yes"]);
    expect(discarded).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\n(?:[0-9a-f]{48} {2}discarded\n){11}\n11 discarded\.\n$/),
    });
    expect(await held()).toEqual([]);
  });

  it("is not there when it says the merchant that the receiver expects", async () => {
    const { url, database, ran, held } = await application();
    for (const [args, env] of [
      [["--payments", "--state", state], {}],
      [["--private-key", privateKey, "--merchant-id", MERCHANT], {}],
      [["--private-key", privateKey], { PAY_MERCHANT_ID: MERCHANT }],
    ] as const) {
      const before = ran.length;
      const references = (): number => new Set(ran.slice(before)).size;
      const ended = await payhooks(["doctor", url, ...args, "--sqlite", database], { env });
      expect(ended.stdout).toMatch(
        /Nothing is wrong with this endpoint\.\n\nLeft behind {2}Nothing is held now\.\n$/,
      );
      expect(ended.code).toBe(0);
      await expect.poll(references).toBe(10);
    }
    expect(await held()).toEqual([]);
  });

  it("is not there either when it says the callback URL that the receiver expects", async () => {
    const callbackUrl = "https://shop.example/callbacks/pay";
    const { url, database } = await application({ expect: { callbackUrl } });
    const args = ["doctor", url, "--private-key", privateKey, "--sqlite", database];
    const wrong = await payhooks(args);
    expect(wrong).toMatchObject({ code: 1, stdout: expect.stringContaining("payments.expect.callbackUrl") });
    const right = await payhooks([...args, "--callback-url", callbackUrl]);
    expect(right).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing is wrong") });
  });

  it("is only said to be possible where no inbox is given, with the way to look and to discard", async () => {
    const { url, database, held } = await application();
    const ended = await payhooks(["doctor", url, "--private-key", privateKey]);
    expect(ended.stdout).toContain("Nothing is wrong with the answers of this endpoint.");
    expect(ended.stdout).toContain("11 deliveries were accepted (2xx). They have run, or they are held");
    expect(ended.stdout).toContain("The merchantId was made up");
    const [, id = ""] =
      /payhooks events --state held --id-prefix (\S+) --sqlite FILE \| --redis URL \| --postgres URL\n/.exec(
        ended.stdout,
      ) ?? [];
    const entries = await held();
    const listed = await payhooks([
      "events",
      "--state",
      "held",
      "--id-prefix",
      id,
      "--sqlite",
      database,
      "--json",
    ]);
    expect(listed.json().map(({ eventId }) => eventId)).toEqual(entries.map(({ eventId }) => eventId));
    expect(entries).toHaveLength(11);
    expect(ended.stdout).toContain(
      `payhooks events discard --all --id-prefix ${id} --reason ${Object.keys(HELD_REASONS)} --sqlite FILE | --redis URL | --postgres URL --by NAME`,
    );
    const known = await payhooks(["doctor", url, "--payments", "--state", state]);
    expect(known.stdout).not.toContain("made up");
  });

  it("is spoken of as one where it is one", async () => {
    const one = { eventId: "0", reason: "ambiguous", detail: null, probe: "genuine callback" } as const;
    const [finding] = heldFindings({ ids: "doctor-", taken: 1, held: [one], isMerchantMadeUp: false });
    expect(finding?.what).toBe("It answers 1 genuine delivery with 2xx, and holds it. ambiguous.");
    const answers = [200];
    const url = await listen((request, response) => {
      request.resume().on("end", () => response.writeHead(answers.shift() ?? 500).end());
    });
    const ended = await payhooks(["doctor", url, "--private-key", privateKey]);
    expect(ended.stdout).toContain("1 delivery was accepted (2xx). It has run, or it is held: the answer");
  });

  it("tells programs the same, and finds webhooks by their ids too", async () => {
    const { connectUrl, database } = await application();
    const ended = await payhooks(["doctor", connectUrl, "--secret", secret, "--sqlite", database, "--json"]);
    const [report] = ended.json();
    expect(report).toMatchObject({
      healthy: true,
      leftBehind: { ids: expect.stringMatching(/^evt_[0-9a-f]{8}-$/), taken: 11, held: [] },
    });
  });

  it("cannot be looked for in an inbox that is not there: nothing is sent then", async () => {
    const { url, held } = await application();
    const ended = await payhooks(["doctor", url, "--private-key", privateKey, "--sqlite", "no such.db"]);
    expect(ended).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("does not exist") });
    expect(await held()).toEqual([]);
  });

  it("has no merchant where there are webhooks", async () => {
    const args = ["doctor", "http://127.0.0.1:1/", "--secret", secret, "--merchant-id", MERCHANT];
    expect(await payhooks(args)).toMatchObject({ code: 2, stderr: expect.stringContaining("no merchantId") });
  });
});

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
