import { execFile } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { createReceiver, type Held, type Receiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  createTestKeys,
  type FakeClock,
  fakeClock,
  resplitPair,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { silent } from "../../../test/support/silent.ts";
import { file, folder } from "./support/files.ts";
import { payhooks, Running } from "./support/run.ts";

const keys = createTestKeys();
let databases = 0;

/** An application on an inbox in a file, in this process, that has put two deliveries on hold. */
async function application(): Promise<{ database: string; receiver: Receiver; ran: string[]; held: Held[] }> {
  const database = join(folder, `inbox ${++databases}.db`);
  const ran: string[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(database),
    run: "after-response",
    logger: silent,
  });
  let isBroken = true;
  receiver.onDeposit(
    (deposit) => {
      if (isBroken) throw new Error("the bank is down");
      ran.push(deposit.referenceId);
    },
    { maxAttempts: 1 },
  );
  await receiver.start();
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })));
  await deliver(receiver, signPaymentCallback(callbackFields({ referenceId: "order-1" }), keys.privateKey));
  await deliver(receiver, resplitPair("order-2", keys.privateKey).forged);
  isBroken = false;
  const held: Held[] = [];
  for await (const entry of receiver.held.list()) held.push(entry);
  return { database, receiver, ran, held };
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

const idOf = (held: readonly Held[], reason: string): string =>
  held.find((entry) => entry.reason === reason)?.eventId ?? "";
const who = ["--by", "amina", "--note", "bank was down"];

describe("payhooks held", () => {
  it("lists what is held, by reason as well, and raw bodies only when asked", async () => {
    const { database } = await application();
    const all = await payhooks(["held", "list", "--sqlite", database]);
    expect(all).toMatchObject({ code: 0, stderr: "" });
    expect(all.stdout).toMatch(/exhausted {2}DEPOSIT SUCCESS \S+ reference order-1 /);
    expect(all.stdout).toMatch(/ambiguous {2}\? \w+ {2}2/);
    expect(all.stdout).toMatch(/deposit: given-up, 1 attempt, .*the bank is down/);
    expect(all.stdout).toContain("ambiguous");
    expect(all.stdout).toContain("2 held.");
    expect(all.stdout).not.toContain('referenceId":');
    const one = await payhooks([
      "held",
      "list",
      "--sqlite",
      database,
      "--reason",
      "exhausted",
      "--body",
      "--json",
    ]);
    expect(one.json()).toEqual([
      expect.objectContaining({
        reason: "exhausted",
        flow: "payments",
        referenceId: "order-1",
        body: expect.stringContaining('"referenceId":"order-1"'),
      }),
    ]);
    const none = await payhooks(["held", "list", "--sqlite", database, "--flow", "connect"]);
    expect(none).toMatchObject({ code: 0, stdout: "Nothing is held.\n" });
  });

  it("says how many there are in all when it shows only some", async () => {
    const { database, receiver } = await application();
    for (let n = 3; n <= 7; n++) await deliver(receiver, resplitPair(`order-${n}`, keys.privateKey).forged);
    const list = (...more: string[]) => payhooks(["held", "list", "--sqlite", database, ...more]);
    const some = await list("--limit", "2");
    expect(some.stdout).toMatch(/\n2 of 7 held are shown\.\n$/);
    expect(some.stdout.match(/^[0-9a-f]{48} /gm)).toHaveLength(2);
    expect((await list("--limit", "2", "--reason", "ambiguous")).stdout).toContain("2 of 6 held are shown.");
    expect((await list("--limit", "7")).stdout).toMatch(/\n7 held\.\n$/);
    expect((await list("--limit", "3", "--json")).json()).toHaveLength(3);
  });

  it("names the reference of a payment, and finds an entry by the id that is in it", async () => {
    const { database, held } = await application();
    const all = await payhooks(["held", "list", "--sqlite", database]);
    expect(all.stdout).toMatch(/exhausted {2}DEPOSIT SUCCESS \S+ reference order-1 /);
    for (const { delivery, eventId } of held) {
      const { payTxnId } = JSON.parse(Buffer.from(delivery.rawBody).toString("utf8"));
      const args = ["held", "list", "--sqlite", database, "--json", "--id", payTxnId.slice(0, 8)];
      expect((await payhooks(args)).json()).toEqual([expect.objectContaining({ eventId })]);
    }
  });

  it("takes the beginning of an id for the id, where it is that of one entry only", async () => {
    const { database, receiver, held } = await application();
    const eventId = idOf(held, "ambiguous");
    // As the help writes it, and as a shell would have it copied.
    const short = await payhooks([
      "held",
      "discard",
      `${eventId.slice(0, 6)}…`,
      eventId,
      "--sqlite",
      database,
      ...who,
      "--yes",
    ]);
    expect(short).toMatchObject({ code: 0, stdout: expect.stringMatching(`\n${eventId}  discarded\n$`) });

    const exhausted = idOf(held, "exhausted");
    const { payTxnId } = JSON.parse(
      Buffer.from(held.find((one) => one.eventId === exhausted)?.delivery.rawBody ?? "").toString("utf8"),
    );
    const fields = callbackFields({ referenceId: "order-1", payTxnId, amount: "99.000000" });
    await deliver(receiver, signPaymentCallback(fields, keys.privateKey));
    const replay = (id: string) => payhooks(["held", "replay", id, "--sqlite", database, ...who]);
    // Two entries of one transaction have ids that begin alike.
    const both = await replay(exhausted.slice(0, 12));
    expect(both).toMatchObject({ code: 2, stdout: "" });
    expect(both.stderr).toMatch(
      /2 held events begin with [0-9a-f]{12}: give more of the id\.\n[0-9a-f]{48}\n/,
    );
    expect(await replay(exhausted.slice(0, 3))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("too short"),
    });
    expect(await replay(exhausted.slice(0, 40))).toMatchObject({
      code: 0,
      stdout: `${exhausted}  queued for your application's worker\n`,
    });
    expect(await replay("00000000")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("is not held"),
    });
  });

  it("queues a replay, which the application's worker runs", async () => {
    const { database, receiver, ran, held } = await application();
    const eventId = idOf(held, "exhausted");
    const ended = await payhooks([
      "held",
      "replay",
      eventId,
      "--sqlite",
      database,
      ...who,
      "--handlers",
      "deposit",
    ]);
    expect(ended).toMatchObject({ code: 0, stdout: `${eventId}  queued for your application's worker\n` });
    expect(ran).toEqual([]);
    await receiver.work();
    expect(ran).toEqual(["order-1"]);
    expect((await receiver.read(eventId))?.state).toBe("done");
  });

  it("runs an entry that is too old only when it is told so expressly", async () => {
    const database = join(folder, `inbox ${++databases}.db`);
    const ran: string[] = [];
    const receiverAt = async (clock: FakeClock | undefined, callbackUrl: string): Promise<Receiver> => {
      const receiver = createReceiver({
        payments: { publicKey: keys.publicKey, expect: { callbackUrl } },
        inbox: sqliteInbox(database, { clock }),
        clock,
        run: "after-response",
        logger: silent,
      });
      receiver.onDeposit(({ referenceId }) => void ran.push(referenceId));
      await receiver.start();
      return receiver;
    };
    const monthAgo = Date.now() - 30 * 86_400_000;
    const before = await receiverAt(fakeClock(monthAgo), "https://m.example/new");
    const fields = callbackFields({ referenceId: "order-9", callbackUrl: "https://m.example/old" }, monthAgo);
    await deliver(before, signPaymentCallback(fields, keys.privateKey));
    await before.close({ graceMs: 0 });
    const after = await receiverAt(undefined, "https://m.example/old");
    onTestFinished(async () => void (await after.close({ graceMs: 0 })));
    const replay = [
      "held",
      "replay",
      "--all",
      "--sqlite",
      database,
      "--by",
      "amina",
      "--note",
      "asked the bank",
      "--reason",
      "unexpected",
      "--yes",
    ];
    expect((await payhooks(replay)).code).toBe(0);
    await after.work();
    expect(ran).toEqual([]);
    expect((await payhooks([...replay, "--even-if-expired"])).code).toBe(0);
    await after.work();
    await after.work();
    expect(ran).toEqual(["order-9"]);
  });

  it("discards, keeping who and why", async () => {
    const { database, receiver, held } = await application();
    const eventId = idOf(held, "ambiguous");
    const ended = await payhooks([
      "held",
      "discard",
      eventId,
      "--sqlite",
      database,
      ...who,
      "--json",
      "--yes",
    ]);
    expect(ended.json()).toEqual([{ eventId, outcome: "discarded" }]);
    const life = await receiver.read(eventId);
    expect(life).toMatchObject({ state: "discarded" });
    expect(life?.history).toEqual(
      expect.arrayContaining([expect.objectContaining({ by: "amina", note: "bank was down" })]),
    );
  });

  it("decides about everything that the filters let through", async () => {
    const { database, receiver, ran } = await application();
    const ended = await payhooks([
      "held",
      "replay",
      "--all",
      "--reason",
      "exhausted",
      "--sqlite",
      database,
      ...who,
      "--json",
      "--yes",
    ]);
    expect(ended.json()).toHaveLength(1);
    await receiver.work();
    expect(ran).toEqual(["order-1"]);
    const left = await payhooks(["held", "list", "--sqlite", database, "--json"]);
    expect(left.json()).toEqual([expect.objectContaining({ reason: "ambiguous" })]);
  });

  it("decides about everything even if nobody reads what it prints, and a list then ends", async () => {
    const { database, receiver } = await application();
    for (let n = 0; n < 20; n++) await deliver(receiver, resplitPair(`order-${n}`, keys.privateKey).forged);
    const unread = async (...args: readonly string[]) => {
      const running = new Running(["held", ...args, "--sqlite", database]);
      running.process.stdout?.destroy();
      return running.ended;
    };
    expect(await unread("list")).toMatchObject({ code: 0, stderr: "" });
    const all = ["discard", "--all", "--reason", "exhausted,ambiguous", "--yes", ...who];
    expect(await unread(...all)).toMatchObject({ code: 0, stderr: "" });
    expect((await receiver.events.counts()).held).toBe(0);
    expect(await unread("discard", "0".repeat(48), ...who)).toMatchObject({ code: 1 });
  });

  it("fails for what is not held, and decides about the rest", async () => {
    const { database, held } = await application();
    const gone = "0".repeat(48);
    const ended = await payhooks([
      "held",
      "discard",
      gone,
      idOf(held, "ambiguous"),
      "--sqlite",
      database,
      ...who,
      "--yes",
    ]);
    expect(ended).toMatchObject({ code: 1, stdout: expect.stringMatching(/is not held[\s\S]*discarded/) });
    const alone = await payhooks(["held", "replay", gone, "--sqlite", database, ...who]);
    expect(alone).toMatchObject({ code: 1, stderr: expect.stringContaining("ERR_HELD_NOT_FOUND") });
  });

  it("says so when the inbox cannot be opened, and keeps the password to itself", async () => {
    const redis = await payhooks(["held", "list", "--redis", "redis://:hunter2@127.0.0.1:1"]);
    expect(redis).toMatchObject({ code: 1, stdout: "" });
    expect(redis.stderr).toMatch(
      /Redis cannot be opened: Error: (?:ECONNREFUSED.*|Connection is closed)\. \[ERR_INBOX_UNAVAILABLE\]/,
    );
    expect(redis.stderr).not.toContain("hunter2");
    const sqlite = await payhooks([
      "held",
      "list",
      "--sqlite",
      file("this is no database, not even a small one".repeat(40)),
    ]);
    expect(sqlite.code).toBe(1);
    expect(sqlite.stderr).not.toMatch(/^\s+at /m);
  });

  it("names the package to install when a driver is missing", async () => {
    // A copy of the command where nothing is installed beside it.
    const alone = join(folder, "alone");
    cpSync(dirname(inject("payhooks")), alone, { recursive: true });
    const args = [join(alone, "payhooks.mjs"), "held", "list", "--redis", "redis://127.0.0.1:1"];
    const failure = await promisify(execFile)(process.execPath, args).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("ERR_PEER_MISSING"),
    });
    expect(failure).toMatchObject({ stderr: expect.stringContaining("npm install ioredis") });
  });

  it("says of a file that no receiver has used that it is none, and makes nothing in it", async () => {
    writeFileSync(join(folder, "unused.db"), "");
    const ended = await payhooks(["held", "list", "--sqlite", "unused.db"], { cwd: folder });
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toMatch(/ERR_INBOX_UNUSED/);
    expect(ended.stderr).toMatch(/no receiver has used it/);
    expect(readFileSync(join(folder, "unused.db"))).toHaveLength(0);
  });

  it.each([
    [["list"], /no inbox to look into.*\n.*--redis URL, --sqlite FILE or --postgres URL/],
    [["lst", "--sqlite", "x.db"], /Did you mean list\?/],
    [["list", "--sqlite", "no such.db"], /no such\.db does not exist/],
    [["list", "--sqlite", "x.db", "--redis", "redis://x"], /one of --redis, --sqlite and --postgres/],
    [["list", "--redis", "localhost"], /redis:\/\/127\.0\.0\.1:6379/],
    [["list", "--sqlite", "x.db", "--reason", "ambigous"], /Did you mean ambiguous\?/],
    [["list", "abc", "--sqlite", "x.db"], /takes no event id/],
    [["list", "--sqlite", "x.db", "--yes"], /--yes is for replay and discard/],
    [["list", "--sqlite", "x.db", "--reason", "exhausted,ambigous"], /Did you mean ambiguous\?/],
    [["replay", "--all", "--sqlite", "x.db", ...who, "--yes"], /--all needs the reasons named/],
    [["discard", "--all", "--sqlite", "x.db", ...who, "--yes"], /--all needs the reasons named/],
    [["replay", "--all", "--reason", "", "--sqlite", "x.db", ...who, "--yes"], /--reason must be one of/],
    [["replay", "--all", "--reason", "exhausted", "--sqlite", "x.db", ...who], /--dry-run, then give --yes/],
    [["replay", "--all", "--reason", "exhausted", "--json", "--sqlite", "x.db", ...who], /ERR_USAGE/],
    [["replay", "--sqlite", "x.db", ...who], /Name the events/],
    [["replay", "abc", "--all", "--sqlite", "x.db", ...who], /not both/],
    [["replay", "abc", "--reason", "exhausted", "--sqlite", "x.db", ...who], /--reason goes with --all/],
    [
      ["discard", "--all", "--reason", "exhausted", "--id", "", "--sqlite", "x.db", ...who],
      /--id must not be empty/,
    ],
    [["discard", "abc", "--id", "3f2a", "--sqlite", "x.db", ...who], /--id goes with --all/],
    [["replay", "abc", "--sqlite", "x.db", "--note", "x"], /--by is missing/],
    [["discard", "abc", "--sqlite", "x.db", "--by", "x"], /--note is missing/],
    [["discard", "abc", "--sqlite", "x.db", "--handlers", "a", ...who], /--handlers is for replay/],
    [["discard", "abc", "--sqlite", "x.db", "--even-if-expired", ...who], /--even-if-expired is for replay/],
  ])("%j exits with 2 and says why", async (args, why) => {
    const ended = await payhooks(["held", ...args], { cwd: folder });
    expect(ended.code).toBe(2);
    // With --json, errors are JSON on the standard output.
    expect(args.includes("--json") ? ended.stdout : ended.stderr).toMatch(why);
    if (!args.includes("--json")) expect(ended.stdout).toBe("");
  });
});
