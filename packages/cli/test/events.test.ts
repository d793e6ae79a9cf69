import { execFile } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { StoredEvent } from "@payhooks/core";
import { callbackFields, fakeClock, resplitPair, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, inject, it } from "vitest";
import { type Application, application, keys, who } from "./support/application.ts";
import { file, folder } from "./support/files.ts";
import { payhooks, RunningCommand } from "./support/run.ts";

/** It has put two deliveries on hold. */
async function holding(): Promise<Omit<Application, "held"> & { readonly held: readonly StoredEvent[] }> {
  const app = await application();
  await app.fails({ referenceId: "order-1" });
  await app.deliver(resplitPair("order-2", keys.privateKey).forged);
  return { ...app, held: await app.held() };
}

const idOf = (held: readonly StoredEvent[], reason: string): string =>
  held.find((entry) => entry.reason === reason)?.eventId ?? "";

describe("payhooks events --csv", () => {
  it("prints one row an event, and no cell is a formula", async () => {
    const app = await application();
    await app.fails({ referenceId: '=cmd("calc"),A1', amount: "10.5" });
    await app.fails({ referenceId: "+49 30 1234", amount: "11" });
    await app.succeeds({ referenceId: "order-3" });
    const table = await payhooks(["events", "--state", "held", "--csv", "--sqlite", app.database]);
    expect(table).toMatchObject({ code: 0, stderr: "\n2 events.\n" });
    const [columns, first, second, end] = table.stdout.split("\n");
    expect(columns).toBe(
      "eventId,state,reason,flow,tenant,event,status,amount,referenceId,id,acceptedAt,heldAt,attempts,replays,copies,lastError",
    );
    expect(first).toMatch(/^[0-9a-f]{48},held,exhausted,payments,,DEPOSIT,SUCCESS,10.500000,/);
    expect(first).toContain(`,"'=cmd(""calc""),A1",`);
    expect(first).toMatch(/,1,0,0,Error: the bank is down$/);
    expect(second).toContain(",'+49 30 1234,");
    expect(end).toBe("");
    // A name whose spelling needs a character that is not shown, as in Persian.
    const spelled = "می\u200cخواهم";
    await app.fails({ referenceId: spelled });
    const unfinished = await payhooks(["events", "--csv", "--sqlite", app.database]);
    const cell = unfinished.stdout.trim().split("\n").at(-1)?.split(",")[8] ?? "";
    expect(cell).toBe(spelled);
    const found = await payhooks(["events", "--reference", cell, "--sqlite", app.database]);
    expect(found).toMatchObject({ code: 0, stdout: expect.stringContaining("\n1 event.") });
    const both = await payhooks(["events", "--csv", "--json", "--sqlite", app.database]);
    expect(both).toMatchObject({ code: 2, stdout: expect.stringContaining("--csv or --json") });
  });
});

describe("payhooks events, about held events", () => {
  it("lists held events, by reason as well, and their fields only when asked", async () => {
    const { database } = await holding();
    const all = await payhooks(["events", "--state", "held", "--sqlite", database]);
    expect(all).toMatchObject({ code: 0, stderr: "" });
    expect(all.stdout).toMatch(/held: exhausted {2}DEPOSIT SUCCESS amount \S+ \S+ reference order-1 /);
    expect(all.stdout).toMatch(/held: ambiguous {2}\? \w+ {2}2/);
    expect(all.stdout).toMatch(/deposit: given-up, 1 attempt, .*the bank is down/);
    expect(all.stdout).toContain("ambiguous");
    expect(all.stdout).toContain("\n2 events.\n");
    expect(all.stdout).not.toContain("referenceId=");
    const one = await payhooks([
      "events",
      "--state",
      "held",
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
        contents: {
          fields: expect.arrayContaining([{ name: "referenceId", value: "order-1" }]),
          signed: expect.arrayContaining([{ name: "referenceId", text: "&referenceId=order-1" }]),
          candidates: null,
        },
      }),
    ]);
    const none = await payhooks(["events", "--state", "held", "--sqlite", database, "--flow", "connect"]);
    expect(none).toMatchObject({ code: 0, stdout: "There are no such events.\n" });
  });

  it("names the reference of a payment, and finds it by its id", async () => {
    const { database, held } = await holding();
    const all = await payhooks(["events", "--state", "held", "--sqlite", database]);
    expect(all.stdout).toMatch(/exhausted {2}DEPOSIT SUCCESS amount \S+ \S+ reference order-1 /);
    for (const { id: payTxnId, eventId, event } of held) {
      if (event === "") continue;
      const args = ["events", "--state", "held", "--sqlite", database, "--json", "--id", payTxnId];
      expect((await payhooks(args)).json()).toEqual([expect.objectContaining({ eventId })]);
    }
  });

  it("takes the beginning of an id for the id, where it is that of one entry only", async () => {
    const { database, deliver, held } = await holding();
    const eventId = idOf(held, "ambiguous");
    // As the help writes it, and as a shell would have it copied.
    const short = await payhooks([
      "events",
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
    const payTxnId = held.find((one) => one.eventId === exhausted)?.id;
    const fields = callbackFields({ referenceId: "order-1", payTxnId, amount: "99.000000" });
    await deliver(signPaymentCallback(fields, keys.privateKey));
    const replay = (id: string) => payhooks(["events", "replay", id, "--sqlite", database, ...who]);
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

  it("names each id that no event has, beside the events of the others", async () => {
    const { database, held } = await holding();
    const eventId = idOf(held, "exhausted");
    const unknown = ["0".repeat(48), "1".repeat(48)];
    const shown = (...args: string[]) => payhooks(["events", ...args, "--sqlite", database]);
    const some = await shown(eventId, ...unknown);
    expect(some.code).toBe(1);
    for (const id of unknown) expect(some.stdout).toContain(`${id}  was not found\n`);
    expect(some.stdout).toMatch(new RegExp(`^${eventId}  held: exhausted`, "m"));
    expect((await shown(eventId, ...unknown, "--json")).json()).toEqual([
      ...unknown.map((id) => ({ eventId: id, outcome: "not-found" })),
      expect.objectContaining({ eventId }),
    ]);
    const table = await shown(eventId, ...unknown, "--csv");
    expect(table.stdout.trim().split("\n")).toHaveLength(2);
    expect(table.stderr).toContain(`${unknown[1]}  was not found\n`);
  });

  it("decides once about an id that is given twice", async () => {
    const { database, held } = await holding();
    const eventId = idOf(held, "exhausted");
    const args = ["events", "discard", eventId, eventId, "--sqlite", database, ...who];
    expect(await payhooks(args)).toMatchObject({ code: 0, stdout: `${eventId}  discarded\n`, stderr: "" });
  });

  it("queues a replay for the application's worker", async () => {
    const { database, receiver, ran, held } = await holding();
    const eventId = idOf(held, "exhausted");
    const ended = await payhooks([
      "events",
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
    expect(ran).toEqual([expect.stringMatching(/^order-1 /)]);
    expect((await receiver.events.get(eventId))?.state).toBe("done");
  });

  it("runs an entry that is too old only on an explicit request", async () => {
    const monthAgo = Date.now() - 30 * 86_400_000;
    const at = (callbackUrl: string) => ({ expect: { callbackUrl } });
    const before = await application({ clock: fakeClock(monthAgo), payments: at("https://m.example/new") });
    await before.succeeds({ referenceId: "order-9", callbackUrl: "https://m.example/old" });
    await before.receiver.close({ graceMs: 0 });
    const { database } = before;
    const after = await application({ database, payments: at("https://m.example/old") });
    const replay = [
      "events",
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
    await after.receiver.work();
    expect(after.ran).toEqual([]);
    expect((await payhooks([...replay, "--even-if-expired"])).code).toBe(0);
    await after.receiver.work();
    await after.receiver.work();
    expect(after.ran).toEqual([expect.stringMatching(/^order-9 /)]);
  });

  it("discards, keeping who and why", async () => {
    const { database, receiver, held } = await holding();
    const eventId = idOf(held, "ambiguous");
    const ended = await payhooks([
      "events",
      "discard",
      eventId,
      "--sqlite",
      database,
      ...who,
      "--json",
      "--yes",
    ]);
    expect(ended.json()).toEqual([{ eventId, outcome: "discarded" }]);
    const life = await receiver.events.get(eventId);
    expect(life).toMatchObject({ state: "discarded" });
    expect(life?.history).toEqual(
      expect.arrayContaining([expect.objectContaining({ by: "amina", note: "bank was down" })]),
    );
  });

  it("decides about everything that the filters let through", async () => {
    const { database, receiver, ran } = await holding();
    const ended = await payhooks([
      "events",
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
    expect(ran).toEqual([expect.stringMatching(/^order-1 /)]);
    const left = await payhooks(["events", "--state", "held", "--sqlite", database, "--json"]);
    expect(left.json()).toEqual([expect.objectContaining({ reason: "ambiguous" })]);
  });

  it("decides about everything even if nobody reads what it prints, and a list then ends", async () => {
    const { database, receiver, deliver } = await holding();
    for (let n = 0; n < 20; n++) await deliver(resplitPair(`order-${n}`, keys.privateKey).forged);
    const unread = async (...args: readonly string[]) => {
      const running = new RunningCommand(["events", ...args, "--sqlite", database]);
      running.process.stdout?.destroy();
      return running.ended;
    };
    expect(await unread("--state", "held")).toMatchObject({ code: 0, stderr: "" });
    const all = ["discard", "--all", "--reason", "exhausted,ambiguous", "--yes", ...who];
    expect(await unread(...all)).toMatchObject({ code: 0, stderr: "" });
    expect((await receiver.events.counts()).held).toBe(0);
    expect(await unread("discard", "0".repeat(48), ...who)).toMatchObject({ code: 1 });
  });

  it("fails for events that are not held, and decides about the rest", async () => {
    const { database, held } = await holding();
    const gone = "0".repeat(48);
    const ended = await payhooks([
      "events",
      "discard",
      gone,
      idOf(held, "ambiguous"),
      "--sqlite",
      database,
      ...who,
      "--yes",
    ]);
    expect(ended).toMatchObject({ code: 1, stdout: expect.stringMatching(/is not held[\s\S]*discarded/) });
    const alone = await payhooks(["events", "replay", gone, "--sqlite", database, ...who]);
    expect(alone).toMatchObject({ code: 1, stderr: expect.stringContaining("ERR_EVENT_NOT_FOUND") });
  });

  it("says so when the inbox cannot be opened, and keeps the password to itself", async () => {
    const redis = await payhooks(["events", "--state", "held", "--redis", "redis://:hunter2@127.0.0.1:1"]);
    expect(redis).toMatchObject({ code: 1, stdout: "" });
    expect(redis.stderr).toMatch(
      /Redis cannot be opened: Error: (?:ECONNREFUSED.*|Connection is closed)\. \[ERR_INBOX_UNAVAILABLE\]/,
    );
    expect(redis.stderr).not.toContain("hunter2");
    const sqlite = await payhooks([
      "events",
      "--state",
      "held",
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
    const args = [join(alone, "payhooks.mjs"), "events", "--state", "held", "--redis", "redis://127.0.0.1:1"];
    const failure = await promisify(execFile)(process.execPath, args).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("ERR_PEER_MISSING"),
    });
    expect(failure).toMatchObject({ stderr: expect.stringContaining("npm install ioredis") });
  });

  it("says that a file is not an inbox if no receiver has used it, and makes nothing in it", async () => {
    writeFileSync(join(folder, "unused.db"), "");
    const ended = await payhooks(["events", "--state", "held", "--sqlite", "unused.db"], { cwd: folder });
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toMatch(/ERR_INBOX_UNUSED/);
    expect(ended.stderr).toMatch(/no receiver has used it/);
    expect(readFileSync(join(folder, "unused.db"))).toHaveLength(0);
  });

  it.each([
    [[], /no inbox to look into.*\n.*--redis URL, --sqlite FILE, --postgres URL or --mysql URL/],
    [
      ["list", "--sqlite", "x.db"],
      /"list" is neither an event id nor one of replay, retry, discard and erase/,
    ],
    [["--sqlite", "no such.db"], /no such\.db does not exist/],
    [["--sqlite", "x.db", "--redis", "redis://x"], /one of --redis, --sqlite, --postgres and --mysql/],
    [["--redis", "localhost"], /redis:\/\/127\.0\.0\.1:6379/],
    [["--sqlite", "x.db", "--reason", "exhausted,ambigous"], /Did you mean ambiguous\?/],
    [["--sqlite", "x.db", "--yes"], /--yes is for decisions/],
    [["--sqlite", "x.db", "--since", "yesterday"], /--since must be a time that there is, such as/],
    [["--sqlite", "x.db", "--state", "heldd"], /Did you mean held\?/],
    [["--sqlite", "x.db", "--reference", ""], /--reference must not be empty/],
    [["--sqlite", "x.db", "--count", "--state", "held"], /--count counts everything: leave --state out\./],
    [["3f0c", "--sqlite", "x.db", "--reference", "a"], /Give event ids or --reference, not both/],
    [
      ["replay", "--all", "--reason", "exhausted", "--body", "--sqlite", "x.db", ...who, "--yes"],
      /--body is for lists/,
    ],
    [
      ["discard", "abc", "--state", "finished", "--sqlite", "x.db", ...who],
      /Only held events can be decided about/,
    ],
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
    [["replay", "abc", "--sqlite", "x.db", "--handlers", " , ", ...who], /--handlers names no handler/],
    [["discard", "abc", "--sqlite", "x.db", "--even-if-expired", ...who], /--even-if-expired is for replay/],
    [["replay", "abc", "--sqlite", "x.db", "--even-if-expired", ...who], /--dry-run, then give --yes/],
    [
      ["replay", "abc", "--sqlite", "x.db", "--handlers", "deposit", "--repeat-effects", ...who],
      /--dry-run, then give --yes/,
    ],
    [
      ["replay", "--all", "--reason", "exhausted", "--rate", "1", "--sqlite", "x.db", ...who, "--yes"],
      /--rate is for retry, erase, and a replay of finished events/,
    ],
    [["discard", "abc", "--rate", "1", "--sqlite", "x.db", ...who], /--rate is for retry, erase, and/],
  ])("%j exits with 2 and says why", async (args, why) => {
    const ended = await payhooks(["events", ...args], { cwd: folder });
    expect(ended.code).toBe(2);
    // With --json, errors are JSON on the standard output.
    expect(args.includes("--json") ? ended.stdout : ended.stderr).toMatch(why);
    if (!args.includes("--json")) expect(ended.stdout).toBe("");
  });
});

/** order-1 is done at its second attempt, order-2 is ambiguous, order-3 fails. */
async function looked(): Promise<Application> {
  const breaks = (referenceId: string, attempt: number): boolean =>
    referenceId === "order-3" || attempt === 1;
  const app = await application({ maxAttempts: 2, breaks });
  const pay = (referenceId: string) => app.succeeds({ referenceId, payTxnId: `tx-${referenceId}` });
  await pay("order-1");
  await app.deliver(resplitPair("order-2", keys.privateKey).forged);
  await pay("order-3");
  await expect
    .poll(async () => {
      await app.receiver.work();
      return app.receiver.events.counts();
    })
    .toMatchObject({ waiting: 0, retrying: 0 });
  return app;
}

describe("payhooks events, about one payment", () => {
  it("shows what became of a payment, by its reference or its transaction", async () => {
    const { database } = await looked();
    for (const query of [
      ["--reference", "order-1"],
      ["--id", "tx-order-1"],
    ]) {
      const { code, stdout, stderr } = await payhooks(["events", ...query, "--sqlite", database]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(
        /^[0-9a-f]{48} {2}done {2}DEPOSIT SUCCESS amount \S+ tx-order-1 reference order-1 {2}2/,
      );
      expect(stdout).toMatch(/failed \(deposit, attempt 1\): Error: the bank is down/);
      expect(stdout).toMatch(/Z done\n\n1 event\.\n$/);
    }
  });

  it("finds an entry that can be read in several ways, and prints JSON", async () => {
    const { database } = await looked();
    const { code, stdout } = await payhooks([
      "events",
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
    const { database } = await looked();
    const found = await payhooks(["events", "--reference", "order-4", "--sqlite", database]);
    expect(found).toMatchObject({ code: 1, stdout: "Nothing was found.\n" });
  });
});

describe("the inbox that the environment names", () => {
  const nowhere = { REDIS_URL: "redis://127.0.0.1:1", DATABASE_URL: "postgres://127.0.0.1:1/shop" };

  it.each([
    [{ REDIS_URL: nowhere.REDIS_URL }, 1, /^payhooks: Redis cannot be opened/],
    [{ DATABASE_URL: nowhere.DATABASE_URL }, 1, /^payhooks: PostgreSQL cannot be opened/],
    [nowhere, 2, /^payhooks: REDIS_URL and DATABASE_URL are both set/],
    [
      { DATABASE_URL: "oracle://127.0.0.1/shop" },
      2,
      /^payhooks: DATABASE_URL must be an address such as postgres:/,
    ],
  ])("is looked into, or refused: %j", async (env, code, says) => {
    const ended = await payhooks(["events"], { env });
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).toMatch(says);
  });

  it("is not asked for when an option names another", async () => {
    const { database } = await looked();
    expect(await payhooks(["events", "--sqlite", database], { env: nowhere })).toMatchObject({ code: 0 });
  });
});

describe("payhooks events", () => {
  it("lists unfinished or finished events, from either end", async () => {
    const { database } = await looked();
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
    expect(await listed("--reference", "order-3", "--since", "1h")).toEqual(["order-3"]);
    expect(await listed("--reference", "order-3", "--until", "1h")).toEqual([]);
    expect(await listed("--until", "2020-01-01T00:00:00Z")).toEqual([]);
    const text = await payhooks(["events", "--sqlite", database, "--limit", "1"]);
    expect(text.stdout).toMatch(
      /held: ambiguous[\s\S]*\n1 event, and there are more: --limit shows them\.\n$/,
    );
  });

  it("counts by state and reason", async () => {
    const { database } = await looked();
    const { stdout } = await payhooks(["events", "--count", "--sqlite", database]);
    expect(stdout).toMatch(/^waiting +0\nretrying +0\nrunning +0\nheld +2\n/);
    expect(stdout).toMatch(/ {2}ambiguous: 1\n/);
    expect(stdout).toMatch(/ {2}exhausted: 1\n/);
    const json = await payhooks(["events", "--count", "--sqlite", database, "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ held: 2, heldBy: { ambiguous: 1, exhausted: 1 } });
    const metrics = await payhooks(["events", "--count", "--prometheus", "--sqlite", database]);
    expect(metrics.stdout).toMatch(
      /^payhooks_events\{messaging_system="payhooks",payhooks_state="held"\} 2$/m,
    );
    expect(metrics.stdout).toMatch(/\} 0\n$/);
  });
});
