import { existsSync } from "node:fs";
import { join } from "node:path";
import { createReceiver } from "@payhooks/core";
import { moveRecords } from "@payhooks/core/inbox";
import { sqliteInbox, sqliteStore } from "@payhooks/core/sqlite";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { folder } from "./support/files.ts";
import { OnTerminal } from "./support/on-terminal.ts";
import { payhooks } from "./support/run.ts";

const keys = createTestKeys();
let files = 0;
const newFile = (): string => join(folder, `moved ${++files}.db`);

/** A receiver on a file gets these deliveries and ends; which orders its handler was called for. */
async function receiving(
  file: string,
  deliveries: readonly Uint8Array[],
  bank: "the bank is down" | "the bank is up" = "the bank is down",
): Promise<string[]> {
  const ran: string[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(file),
    run: "after-response",
    logger: silent,
  }).ignore("WITHDRAWAL");
  receiver.onDeposit(
    ({ referenceId }) => {
      if (referenceId === "order-bad" && bank === "the bank is down") throw new Error(bank);
      ran.push(referenceId);
    },
    { maxAttempts: 1 },
  );
  await receiver.start();
  for (const rawBody of deliveries) {
    const work: Promise<unknown>[] = [];
    const headers = { get: (name: string) => (name === "content-type" ? "application/json" : null) };
    const waitUntil = (promise: Promise<unknown>): void => void work.push(promise);
    const delivery = { method: "POST", url: "/callbacks", headers, rawBody, waitUntil };
    expect((await receiver.payments.receive(delivery)).status).toBe(200);
    await Promise.all(work);
  }
  await receiver.close({ graceMs: 5_000 });
  return ran;
}

const signed = (referenceId: string): Uint8Array =>
  signPaymentCallback(callbackFields({ referenceId }), keys.privateKey).rawBody;

/** Everything is written to the new inbox, and nothing is taken out of the old one. */
async function interruptMove(from: string, to: string): Promise<void> {
  const [source, target] = [sqliteStore(from), sqliteStore(to)];
  await Promise.all([source.open(), target.open()]);
  source.swap = () => Promise.reject(new Error("killed"));
  await expect(moveRecords(source, target)).rejects.toThrow("killed");
  await Promise.all([source.close(), target.close()]);
}

it("moves an inbox: finished events are known there, and held ones are held", async () => {
  const [from, to] = [newFile(), newFile()];
  const deliveries = [signed("order-1"), signed("order-2"), signed("order-bad")];
  expect(await receiving(from, deliveries)).toEqual(["order-1", "order-2"]);

  const planned = await payhooks(["move", "--from", from, "--to", to, "--dry-run"]);
  expect(planned).toMatchObject({ code: 0, stderr: "" });
  expect(planned.stdout).toContain("0 unfinished, 1 held and 2 finished events in 3 records would be moved.");
  expect(planned.stdout).toContain("The new inbox does not exist yet. It would be created.");
  expect(existsSync(to)).toBe(false);
  const moved = await payhooks(["move", "--from", from, "--to", to]);
  expect(moved).toMatchObject({ code: 0, stderr: "" });
  expect(moved.stdout).toContain("1 held and 2 finished events in 3 records were moved, and read back.");
  expect(moved.stdout).toContain(`SQLite ${from} → SQLite ${to}`);

  expect(await receiving(to, deliveries)).toEqual([]);
  const held = await payhooks(["events", "--state", "held", "--sqlite", to]);
  expect(held.stdout).toMatch(/exhausted {2}DEPOSIT SUCCESS amount \S+ \S+ reference order-bad /);
  const left = await payhooks(["events", "--state", "held", "--sqlite", from]);
  expect(left.stdout).toContain("There are no such events.");

  const again = await payhooks(["move", "--from", from, "--to", to, "--json"]);
  expect(again.json()).toMatchObject([{ dryRun: false, records: 0, alreadyPresent: 0, notMoved: [] }]);
  const dry = await payhooks(["move", "--from", from, "--to", to, "--dry-run", "--json"]);
  expect(dry.json()).toMatchObject([{ dryRun: true, toExists: true, records: 0 }]);
});

it.skipIf(process.platform !== "linux")(
  "move asks on a terminal before it creates or moves anything",
  async () => {
    const [from, to] = [newFile(), newFile()];
    await receiving(from, [signed("order-1")]);
    const asked = async (): Promise<OnTerminal> => {
      const terminal = new OnTerminal(["move", "--from", from, "--to", to]);
      await terminal.until("Type move 1 to go on: ");
      expect(existsSync(to)).toBe(false);
      return terminal;
    };
    const declined = await asked();
    declined.type("yes\r");
    expect(await declined.ended).toBe(1);
    expect(declined.output).toContain("Nothing was moved.");
    const confirmed = await asked();
    confirmed.type("move 1\r");
    expect(await confirmed.ended).toBe(0);
    expect(confirmed.output).toContain("1 finished events in 1 records were moved, and read back.");
    const sure = new OnTerminal(["move", "--from", to, "--to", from, "--yes"]);
    expect(await sure.ended).toBe(0);
    expect(sure.output).not.toContain("Type move");
  },
);

it("move runs no event again that the old receiver has run since a move was interrupted, and shows none that was erased", async () => {
  const [from, to] = [newFile(), newFile()];
  const deliveries = [signed("order-1"), signed("order-bad")];
  expect(await receiving(from, deliveries)).toEqual(["order-1"]);
  await interruptMove(from, to);

  const decide = ["--all", "--yes", "--by", "amina", "--sqlite", from];
  const replayed = await payhooks([
    "events",
    "replay",
    "--reason",
    "exhausted",
    "--note",
    "repeat-effects",
    ...decide,
  ]);
  expect(replayed).toMatchObject({ code: 0, stderr: "" });
  expect(await receiving(from, deliveries, "the bank is up")).toEqual(["order-bad"]);
  const erased = await payhooks(["events", "erase", "--reference", "order-1", ...decide]);
  expect(erased).toMatchObject({ code: 0, stderr: "" });

  const moved = await payhooks(["move", "--from", from, "--to", to]);
  expect(moved).toMatchObject({ code: 0, stderr: "" });
  expect(moved.stdout).not.toContain("In the new inbox already");
  expect(await receiving(to, deliveries, "the bank is up")).toEqual([]);
  for (const [reference, shown] of [
    ["order-1", "Nothing was found."],
    ["order-bad", "done"],
  ] as const) {
    const found = await payhooks(["events", "--state", "finished", "--reference", reference, "--sqlite", to]);
    expect(found.stdout).toContain(shown);
  }
});

it("move names the records that it does not move, and counts those that the new inbox had already", async () => {
  const [from, to] = [newFile(), newFile()];
  expect(await receiving(from, [signed("order-1"), signed("order-bad")])).toEqual(["order-1"]);
  await interruptMove(from, to);
  for (const [file, decision] of [
    [from, "replay"],
    [to, "discard"],
  ] as const) {
    const decided = await payhooks(
      `events ${decision} --all --reason exhausted --yes --by amina --note test --sqlite`
        .split(" ")
        .concat(file),
    );
    expect(decided).toMatchObject({ code: 0, stderr: "" });
  }
  const moved = await payhooks(["move", "--from", from, "--to", to]);
  expect(moved).toMatchObject({ code: 1, stderr: "" });
  expect(moved.stdout).toContain("In the new inbox already, as far or further: 1 of these records.");
  expect(moved.stdout).toMatch(/\nnot moved {2}\S+ {2}both inboxes have it, and each knows something of it/);
  expect(moved.stdout).toContain("1 record stays in the old inbox.");
  const again = await payhooks(["move", "--from", from, "--to", to, "--json"]);
  expect(again.json()).toMatchObject([{ records: 0, alreadyPresent: 0, notMoved: [{ why: "conflict" }] }]);
});

it.each([
  ["no --to", ["--from", "a.db"], /--to is missing/],
  ["no such file", ["--from", "there is none.db", "--to", "b.db"], /does not exist/],
  ["an address that leads nowhere", ["--from", "mongodb://x", "--to", "b.db"], /postgres:\/\/…/],
  [
    "a prefix of a file",
    ["--from", "a.db", "--from-prefix", "x", "--to", "b.db"],
    /Only Redis and MySQL have a prefix/,
  ],
])("refuses %s", async (_, args, message) => {
  const ended = await payhooks(["move", ...args]);
  expect(ended.code).toBe(2);
  expect(ended.stderr).toMatch(message);
});

it("move names a server that is not there, without its password", async () => {
  const from = "postgres://shop:secret@127.0.0.1:1/shop";
  const ended = await payhooks(["move", "--from", from, "--to", newFile()]);
  expect(ended).toMatchObject({ code: 1, stdout: "" });
  expect(ended.stderr).toMatch(/PostgreSQL 127\.0\.0\.1:1\/shop cannot be opened.*ERR_INBOX_UNAVAILABLE/);
  expect(ended.stderr).not.toContain("secret");
});
