import Database from "libsql";
import { describe, expect, it } from "vitest";
import { type Application, application, who } from "./support/application.ts";
import { OnTerminal } from "./support/on-terminal.ts";
import { type CommandResult, payhooks, RunningCommand } from "./support/run.ts";

/** Two deposits are done and kept, and one is held. */
async function ended(): Promise<Application> {
  const app = await application({ payments: { keep: { signedTextMs: 86_400_000 } } });
  for (const referenceId of ["order-1", "order-2"]) await app.succeeds({ referenceId });
  await app.fails({ referenceId: "order-3" });
  app.ran.length = 0;
  return app;
}

describe("payhooks events replay --state finished", () => {
  const replay = ["events", "replay", "--all", "--state", "finished", "--rate", "10000"];

  it("says what would run again, and lets it run", async () => {
    const { database, receiver, ran } = await ended();
    const dry = await payhooks([...replay, "--since", "1h", "--dry-run", "--sqlite", database]);
    expect(dry).toMatchObject({ code: 0, stderr: "" });
    expect(dry.stdout).toMatch(/DEPOSIT SUCCESS .* reference order-1 .*decided\n/);
    expect(dry.stdout).toContain("To replay: 2 (2 done).\nNothing was decided.\n");
    expect(await receiver.work()).toMatchObject({ ran: 0 });
    const done = await payhooks([...replay, "--yes", "--sqlite", database, ...who]);
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect(done.stdout).toContain("2 queued for your application's worker.");
    expect(await receiver.work()).toMatchObject({ ran: 2 });
    expect(ran.map((line) => line.split(" ")[0]).sort()).toEqual(["order-1", "order-2"]);
  });

  it("goes on under its name, and decides about no event twice", async () => {
    const { database, receiver } = await ended();
    const until = new Date(Date.now() + 1_000).toISOString();
    const named = [...replay, "--name", "bug-17", "--until", until, "--yes", "--sqlite", database, ...who];
    expect((await payhooks(named)).stdout).toContain("2 queued");
    expect(await receiver.work()).toMatchObject({ ran: 2 });
    const again = await payhooks(named);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(again.stdout).toContain(
      "To replay: 0.\nDecided before under this name: 2.\nNothing was decided.\n",
    );
  });

  it("names the events that it leaves alone", async () => {
    const app = await application();
    await app.succeeds({ referenceId: "order-1" });
    const dry = await payhooks([...replay, "--dry-run", "--sqlite", app.database]);
    expect(dry.stdout).toContain("To replay: 0.\nSkipped: 1 not-kept.\n");
  });
});

describe("a bulk that ends before its last event", () => {
  const all = ["events", "replay", "--all", "--state", "finished", "--since", "1h", "--yes", ...who];
  const slow = ["--rate", "1"];
  const references = ["order-1", "order-2", "order-3", "order-4"];

  /** Four deposits are done and kept, and a slow replay of all has decided about the first. */
  async function begun(more: readonly string[] = []): Promise<{ app: Application; bulk: RunningCommand }> {
    const app = await application({ payments: { keep: { signedTextMs: 86_400_000 } } });
    for (const referenceId of references) await app.succeeds({ referenceId });
    app.ran.length = 0;
    const bulk = new RunningCommand([...all, ...slow, ...more, "--sqlite", app.database]);
    await bulk.until(more.includes("--json") ? /"outcome":"decided"/ : /reference order-1 .*decided\n/);
    return { app, bulk };
  }

  /** Goes on with what the command has printed, after the events that it had decided about have run. */
  async function goneOn({ app }: { app: Application }, printed: readonly string[]): Promise<CommandResult> {
    await app.receiver.work();
    const ended = await payhooks([...all, "--rate", "10000", ...printed, "--sqlite", app.database]);
    await app.receiver.work();
    return ended;
  }

  function ranOnce({ ran }: Application): void {
    expect(ran.map((line) => line.split(" ")[0]).sort()).toEqual(references);
  }

  /** The options of the line that says how to go on. */
  function optionsIn(stdout: string): readonly string[] {
    const [, options = ""] =
      /^If this is interrupted, continue with the same command with (.*)$/m.exec(stdout) ?? [];
    expect(options).toMatch(/^--name \S+ --until \S+Z --since \S+Z$/);
    return options.split(" ");
  }

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("says how to go on, after %s", async (signal) => {
    const { app, bulk } = await begun();
    const before = optionsIn(bulk.stdout);
    bulk.process.kill(signal);
    const { code, stdout } = await bulk.ended;
    expect(code).toBe(1);
    expect(stdout).toMatch(/\n[12] queued for your application's worker\.\n/);
    expect(stdout).toContain(`It was interrupted. Continue with the same command with ${before.join(" ")}\n`);
    expect(await goneOn({ app }, before)).toMatchObject({ code: 0, stderr: "" });
    ranOnce(app);
  });

  it("says how to go on with --json, before the first decision and at its end", async () => {
    const { app, bulk } = await begun(["--json"]);
    bulk.process.kill("SIGINT");
    const ended = await bulk.ended;
    expect(ended.code).toBe(1);
    const lines = ended.json();
    const [first, last] = [lines[0], lines.at(-1)];
    const name = expect.stringMatching(/^[0-9a-f-]{36}$/);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(first).toEqual({ name, until: time, since: time });
    expect(last).toMatchObject({ ...first, complete: false, dryRun: false, skipped: {} });
    expect(lines.slice(1, -1)).toHaveLength(Number(last?.decided));
    const { name: text, until, since } = first as Record<"name" | "until" | "since", string>;
    const again = await goneOn({ app }, ["--name", text, "--until", until, "--since", since, "--json"]);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(again.json().at(-1)).toMatchObject({ name: text, until, since, complete: true });
    ranOnce(app);
  });

  it("has said how to go on, if it is killed", async () => {
    const { app, bulk } = await begun();
    bulk.process.kill("SIGKILL");
    const { stdout } = await bulk.ended;
    expect(await goneOn({ app }, optionsIn(stdout))).toMatchObject({ code: 0, stderr: "" });
    ranOnce(app);
  });

  it.each([false, true])("has said how to go on, if the inbox fails, with --json: %s", async (isJson) => {
    const { app, bulk } = await begun(isJson ? ["--json"] : []);
    const database = new Database(app.database);
    database.exec("CREATE TRIGGER full BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'full'); END");
    const { code, stdout, stderr } = await bulk.ended;
    database.exec("DROP TRIGGER full");
    database.close();
    expect({ code, stdout, stderr }).toMatchObject(
      isJson
        ? { code: 1, stdout: expect.stringContaining('{"error":{"code":"ERR_INBOX_UNAVAILABLE"') }
        : { code: 1, stderr: expect.stringContaining("[ERR_INBOX_UNAVAILABLE]") },
    );
    if (!isJson)
      expect(stdout).toMatch(/\nIt failed\. Continue with the same command with --name \S+ --until /);
    const [first = "{}"] = stdout.split("\n");
    const printed = isJson
      ? Object.entries<string>(JSON.parse(first)).flatMap(([name, value]) => [`--${name}`, value])
      : optionsIn(stdout);
    expect(await goneOn({ app }, printed)).toMatchObject({ code: 0, stderr: "" });
    ranOnce(app);
  });

  it("is about named events, and then has no time", async () => {
    const app = await application({ payments: { keep: { signedTextMs: 86_400_000 } } });
    for (const referenceId of references) await app.succeeds({ referenceId });
    app.ran.length = 0;
    const { events } = await app.receiver.events.list({ state: "finished" });
    const named = ["events", "replay", ...events.map(({ eventId }) => eventId), "--state", "finished"];
    const command = [...named, "--yes", ...who, "--sqlite", app.database];
    const bulk = new RunningCommand([...command, ...slow, "--json"]);
    await bulk.until(/"outcome":"decided"/);
    bulk.process.kill("SIGINT");
    const [first] = (await bulk.ended).json();
    expect(first).toEqual({ name: expect.any(String), until: null, since: null });
    await app.receiver.work();
    const again = await payhooks([...command, "--rate", "10000", "--name", String(first?.name)]);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(again.stdout).toMatch(/Decided before under this name: [12]\./);
    await app.receiver.work();
    ranOnce(app);
  });

  it("refuses an empty name, such as of a variable that is not set", async () => {
    const empty = ["--name", "", "--until", "2026-03-01", "--sqlite", "x.db"];
    expect(await payhooks([...all, ...empty])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--name must not be empty."),
    });
  });
});

describe.skipIf(process.platform !== "linux")("while somebody is asked", () => {
  it("more events finish, and another runs again: only those that were counted are erased", async () => {
    const { database, receiver, succeeds } = await ended();
    const { events } = await receiver.events.list({ state: "finished" });
    const [changed = "", counted = ""] = events.map(({ eventId }) => eventId);
    const erase = ["events", "erase", "--all", "--state", "finished", "--until", "2100-01-01"];
    const terminal = new OnTerminal([...erase, "--by", "amina", "--sqlite", database]);
    await terminal.until("Type erase 2 to go on: ");
    await succeeds({ referenceId: "order-4" });
    await receiver.events.replay(changed, { by: "marta", note: "it failed half-way" });
    terminal.type("erase 2\r");
    expect(await terminal.ended).toBe(0);
    expect(terminal.output).toContain(
      "\n1 erased.\nLeft alone, because they have changed since they were counted: 1 changed.\n",
    );
    expect(terminal.output).toContain(`${changed}  DEPOSIT SUCCESS`);
    const states = (await receiver.events.list({ referenceId: "order-4" })).events.map(({ state }) => state);
    expect(states).toEqual(["done"]);
    expect(await receiver.events.get(changed)).toMatchObject({ state: "waiting", erasedAt: null });
    expect(await receiver.events.get(counted)).toMatchObject({ erasedAt: expect.any(Number) });
  });

  it("a named event that was skipped finishes: it is not erased", async () => {
    const { database, receiver, held } = await ended();
    const [done] = (await receiver.events.list({ state: "finished" })).events;
    const [late] = await held();
    const ids = [done?.eventId ?? "", late?.eventId ?? ""];
    const terminal = new OnTerminal(["events", "erase", ...ids, "--by", "amina", "--sqlite", database]);
    await terminal.until("Type erase 1 to go on: ");
    await receiver.events.discard(ids[1] ?? "", { by: "marta", note: "paid by hand" });
    terminal.type("erase 1\r");
    expect(await terminal.ended).toBe(1);
    expect(terminal.output).toMatch(/\n1 erased\.\n$/);
    expect(terminal.output).toContain(`${ids[1]}  DEPOSIT SUCCESS`);
    expect(await receiver.events.get(ids[1] ?? "")).toMatchObject({ state: "discarded", erasedAt: null });
  });
});

describe("payhooks events --min-amount, --max-amount and --handler", () => {
  it("narrow a list, and a decision", async () => {
    const app = await application();
    for (const [at, amount] of ["5", "10.50", "1000"].entries()) {
      await app.fails({ referenceId: `order-${at}`, amount });
    }
    const range = ["--min-amount", "5.000001", "--max-amount", "10.5", "--sqlite", app.database];
    const list = await payhooks(["events", "--handler", "deposit", ...range]);
    expect(list).toMatchObject({ code: 0, stdout: expect.stringContaining("reference order-1 ") });
    expect(list.stdout).toContain("\n1 event.\n");
    expect((await payhooks(["events", "--handler", "other", ...range])).stdout).toBe(
      "There are no such events.\n",
    );
    const discard = ["events", "discard", "--all", "--reason", "exhausted", ...range, ...who, "--yes"];
    expect(await payhooks(discard)).toMatchObject({ code: 0 });
    expect((await app.held()).map(({ referenceId }) => referenceId)).toEqual(["order-0", "order-2"]);
  });

  it.each([
    [["--min-amount", "1e3"], 'The min of an amount is "1e3".'],
    [["--max-amount", ""], 'The max of an amount is "".'],
    [["--min-amount", "2", "--max-amount", "1"], "The min of an amount is above its max."],
    [["--handler", "sh ip"], 'The handler of events.list is "sh ip"'],
  ])("are refused with %j, in a list and in each decision", async (wrong, message) => {
    const app = await application();
    await app.fails({ referenceId: "order-1", amount: "5" });
    const inbox = ["--sqlite", app.database];
    const held = ["--reason", "exhausted"];
    for (const command of [
      ["events", ...wrong],
      ["events", "--csv", ...wrong],
      ...["replay", "discard"].map((verb) => ["events", verb, "--all", ...held, ...wrong, ...who, "--yes"]),
      ["events", "replay", "--all", "--state", "finished", ...wrong, ...who, "--yes"],
      ["events", "erase", "--all", "--state", "finished", ...wrong, "--by", "amina", "--yes"],
      ["events", "retry", "--all", ...wrong, ...who, "--yes"],
    ]) {
      const { code, stderr } = await payhooks([...command, ...inbox]);
      expect([command, code, stderr]).toEqual([command, 2, expect.stringContaining(message)]);
    }
    expect(await app.held()).toHaveLength(1);
  });
});

describe("payhooks events erase", () => {
  it("takes only events that ended in the way that --reason names", async () => {
    const { database, receiver, held } = await ended();
    const [{ eventId = "" } = {}] = await held();
    await receiver.events.discard(eventId, { by: "amina", note: "forged" });
    const args = ["events", "erase", "--all", "--state", "finished", "--by", "amina", "--sqlite", database];
    const erased = await payhooks([...args, "--reason", "discarded,stale", "--yes"]);
    expect(erased).toMatchObject({ code: 0, stderr: "" });
    expect(erased.stdout).toContain(
      "To erase: 1 (1 discarded).\nExcluded, because --reason does not name them: 2 done.\n",
    );
    const list = await payhooks(["events", "--reason", "stale", "--sqlite", database]);
    expect(list).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("No event is held for the reason stale"),
    });
  });

  it("erases finished events, and held ones only on request", async () => {
    const { database, receiver, held } = await ended();
    const one = ["events", "erase", "--all", "--reference", "order-1", "--by", "amina", "--sqlite", database];
    const erased = await payhooks([...one, "--yes"]);
    expect(erased).toMatchObject({ code: 0, stderr: "" });
    expect(erased.stdout).toContain("1 erased.");
    expect((await receiver.events.list({ referenceId: "order-1" })).events).toEqual([]);

    const [{ eventId = "" } = {}] = await held();
    const waits = ["events", "erase", eventId, "--by", "amina", "--sqlite", database, "--yes"];
    expect((await payhooks(waits)).stdout).toContain("To erase: 0.\nSkipped: 1 unfinished.\n");
    expect((await payhooks([...waits, "--unfinished"])).stdout).toContain("1 erased.");
    expect(await held()).toEqual([]);
    expect(await receiver.events.get(eventId)).toMatchObject({ id: "", state: "discarded", delivery: null });
  });

  it.each([
    [["--by", "amina"], /Name the events, or give --all/],
    [["--all", "--by", "amina"], /needs --state, --id or --reference/],
    [["--all", "--state", "finished"], /--by is missing/],
    [["--all", "--state", "finished", "--by", "amina"], /nobody can be asked/],
    [
      ["--all", "--state", "finished", "--by", "amina", "--handlers", "a"],
      /--handlers is not for this erase/,
    ],
    [["--all", "--state", "finished", "--by", "amina", "--name", "x"], /--name needs the --until/],
  ])("refuses %j", async (args, says) => {
    const refused = await payhooks(["events", "erase", ...args, "--sqlite", "x.db"]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(says);
  });
});
