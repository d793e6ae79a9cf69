import type { HeldReason, StoredEvent } from "@payhooks/core";
import { HELD_REASONS, needsInvestigation } from "@payhooks/core/events";
import { resplitPair } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { type Application, application, keys, who } from "./support/application.ts";
import { OnTerminal } from "./support/on-terminal.ts";
import { payhooks, RunningCommand } from "./support/run.ts";

const held = (app: Application, args: readonly string[]) =>
  payhooks(["events", ...args, "--sqlite", app.database]);

const ofTenant = (tenant: string | undefined) =>
  tenant === undefined ? {} : { publicKey: () => ({ tenant, keys: keys.publicKey }) };

/** One transaction that was credited with 10.50 and is then said to be 9999.00, beside others that failed. */
async function contradicted(tenant?: string): Promise<Application & { readonly mismatch: StoredEvent }> {
  const app = await application({ payments: ofTenant(tenant) });
  await app.succeeds({ payTxnId: "pay-1", referenceId: "order-1", amount: "10.500000" });
  await app.succeeds({ payTxnId: "pay-1", referenceId: "order-1", amount: "9999.000000" });
  await app.fails({ payTxnId: "pay-2", referenceId: "order-2", amount: "20.000000" });
  await app.fails({ payTxnId: "pay-3", referenceId: "order-3", amount: "30.000000" });
  app.ran.splice(0);
  const mismatch = (await app.held()).find(({ reason }) => reason === "mismatch");
  if (mismatch === undefined) throw new Error("nothing is held as mismatch");
  return { ...app, mismatch };
}

describe("a decision about all held events", () => {
  it.each(["replay", "discard"])("to %s never includes a reason that was not named", async (action) => {
    const app = await contradicted();
    const ended = await held(app, [action, "--all", "--reason", "exhausted", "--yes", ...who]);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout).not.toContain(app.mismatch.eventId);
    await app.receiver.work();
    expect(app.ran.sort()).toEqual(action === "replay" ? ["order-2 20.000000", "order-3 30.000000"] : []);
    expect((await app.held()).map(({ reason }) => reason)).toEqual(["mismatch"]);
  });

  it("shows old and new amounts, the other events of the transaction and the counts, and decides nothing with --dry-run", async () => {
    const app = await contradicted();
    const args = ["replay", "--all", "--reason", "exhausted,mismatch", "--dry-run"];
    const { code, stdout } = await held(app, args);
    expect(code).toBe(0);
    const { eventId } = app.mismatch;
    expect(stdout).toMatch(
      new RegExp(
        `${eventId}  mismatch  DEPOSIT SUCCESS amount 9999.000000 pay-1 reference order-1  \\d{4}-\\S+Z, \\d+ s ago\\n` +
          "  amount differs from the one that arrived the same way before\\n" +
          "  same transaction: DEPOSIT SUCCESS amount 10\\.500000, done, \\S+Z\\n" +
          "  a second event of this transaction will run as well\\n" +
          "  runs every handler of DEPOSIT that has not finished\\n",
      ),
    );
    expect(stdout).toMatch(
      /exhausted {2}DEPOSIT SUCCESS amount 20\.000000 [^\n]*\n {2}deposit|runs every handler of/,
    );
    expect(stdout).toContain("runs every handler of DEPOSIT that has not finished, deposit among them");
    expect(stdout).toMatch(/\nTo replay: 2 exhausted, 1 mismatch\.\nNothing was decided\.\n$/);
    const json = await held(app, [...args, "--json"]);
    expect(json.json()).toHaveLength(3);
    expect(json.json().find((one) => one.eventId === eventId)).toMatchObject({
      outcome: "would-be-queued",
      reason: "mismatch",
      amount: "9999.000000",
      others: [{ status: "SUCCESS", amount: "10.500000", state: "done", runsToo: true }],
      skippedAfter: null,
    });
    expect(await app.held()).toHaveLength(3);
  });

  it.each([undefined, "shop-7"])(
    "shows the payment that has used a reference before, of the tenant %s",
    async (tenant) => {
      const app = await application({ payments: { ...ofTenant(tenant), oneSuccessPerReference: true } });
      await app.succeeds({ payTxnId: "pay-1", referenceId: "order-1", amount: "10.500000" });
      await app.succeeds({ payTxnId: "pay-2", referenceId: "order-1", amount: "11.000000" });
      const args = ["replay", "--all", "--reason", "reference-reused", "--dry-run"];
      const { stdout } = await held(app, args);
      expect(stdout).toMatch(/same reference: DEPOSIT SUCCESS amount 10\.500000 pay-1, done/);
      expect(stdout).toContain("a second payment with this reference will run");
      expect((await held(app, [...args, "--json"])).json()).toMatchObject([
        { amount: "11.000000", sameReference: [{ id: "pay-1", amount: "10.500000", state: "done" }] },
      ]);
    },
  );

  it("says of which tenant an event is", async () => {
    const app = await contradicted("shop-7");
    const { stdout } = await held(app, ["replay", "--all", "--reason", "exhausted", "--dry-run"]);
    expect(stdout.match(/reference order-\d tenant shop-7 /g)).toHaveLength(2);
  });

  it("never replays two outcomes of one transaction together, and says so before", async () => {
    const app = await application();
    await app.fails({ payTxnId: "pay-1", referenceId: "order-1", amount: "10.500000" });
    await app.fails({ payTxnId: "pay-1", referenceId: "order-1", amount: "9999.000000" });
    const all = ["replay", "--all", "--reason", "exhausted,mismatch"];
    const before = await held(app, [...all, "--dry-run"]);
    expect(before.stdout).toContain("same transaction: DEPOSIT SUCCESS amount 10.500000, held: exhausted");
    expect(before.stdout.match(/is skipped, once the other event of this transaction/g)).toHaveLength(1);
    const ended = await held(app, [...all, "--yes", ...who]);
    expect(ended).toMatchObject({ code: 1, stdout: expect.stringContaining("1 queued, 1 changed.") });
    await app.receiver.work();
    expect(app.ran).toEqual(["order-1 10.500000"]);
    // Discarding one of them says nothing about the other.
    expect((await held(app, ["discard", ...all.slice(1), "--yes", ...who])).code).toBe(0);
  });

  it("has every event once, page by page and reason by reason", async () => {
    const app = await application();
    for (let n = 0; n < 250; n++) await app.fails({ payTxnId: `pay-${n}` });
    await app.deliver(resplitPair("order-x", keys.privateKey).forged);
    const args = ["discard", "--all", "--reason", "ambiguous,exhausted", "--yes", "--json", ...who];
    const ended = await held(app, args);
    expect(ended.code).toBe(0);
    const outcomes = ended.json();
    expect(new Set(outcomes.map(({ eventId }) => eventId)).size).toBe(251);
    expect(outcomes.every(({ outcome }) => outcome === "discarded")).toBe(true);
    expect((await app.receiver.events.counts()).held).toBe(0);
  });
});

describe("a decision about named events", () => {
  const truths = (Object.keys(HELD_REASONS) as HeldReason[]).filter(needsInvestigation);

  it("needs --yes where nobody can be asked, if one of them is a question of what is true", async () => {
    expect(truths).toContain("mismatch");
    const app = await contradicted();
    const exhausted = (await app.held()).find(({ reason }) => reason === "exhausted")?.eventId ?? "";
    for (const action of ["replay", "discard"]) {
      const refused = await held(app, [action, exhausted, app.mismatch.eventId, ...who]);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("give --yes") });
      expect(refused.stdout).toContain("same transaction: DEPOSIT SUCCESS amount 10.500000, done");
    }
    expect(await app.held()).toHaveLength(3);
    const replayed = await held(app, ["replay", app.mismatch.eventId, ...who, "--yes"]);
    expect(replayed.code).toBe(0);
    expect(replayed.stdout).toMatch(
      /a second event of this transaction will run as well[\s\S]*queued for your application's worker\n$/,
    );
    await app.receiver.work();
    expect(app.ran).toEqual(["order-1 9999.000000"]);
  });
});

describe.skipIf(process.platform !== "linux")("on a terminal", () => {
  const asked = async (app: Application) => {
    const args = ["replay", "--all", "--reason", "exhausted", "--sqlite", app.database, ...who];
    const terminal = new OnTerminal(["events", ...args]);
    await terminal.until("Type replay 2 to go on: ");
    return terminal;
  };

  it("it asks, and decides only when the words are typed", async () => {
    const app = await contradicted();
    const terminal = await asked(app);
    terminal.type("replay 2\r");
    expect(await terminal.ended).toBe(0);
    expect(terminal.output).toContain("2 queued.");
    await app.receiver.work();
    expect(app.ran.sort()).toEqual(["order-2 20.000000", "order-3 30.000000"]);
  });

  it.each([
    ["another answer", "yes\r"],
    ["an empty answer", "\r"],
    ["Ctrl-C", "\u0003"],
    ["Ctrl-D", "\u0004"],
  ])("it decides nothing after %s", async (_what, typed) => {
    const app = await contradicted();
    const terminal = await asked(app);
    terminal.type(typed);
    expect(await terminal.ended).toBe(1);
    expect(terminal.output).toContain("Nothing was decided.");
    expect(await app.held()).toHaveLength(3);
  });

  it("it asks before effects happen once more, and before an event runs that is too old", async () => {
    const app = await contradicted();
    const failed = (await app.held()).find(({ reason }) => reason === "exhausted")?.eventId ?? "";
    for (const options of [["--handlers", "deposit", "--repeat-effects"], ["--even-if-expired"]]) {
      const args = ["replay", failed, ...options, "--by", "amina", "--note", "why", "--sqlite", app.database];
      const terminal = new OnTerminal(["events", ...args]);
      await terminal.until("Type replay 1 to go on: ");
      terminal.type("\r");
      expect(await terminal.ended).toBe(1);
    }
    expect(await app.held()).toHaveLength(3);
  });

  it("it leaves alone events that somebody else has decided about meanwhile, that have changed, or that came later", async () => {
    const app = await contradicted();
    const terminal = await asked(app);
    const [first, second] = (await app.held()).filter(({ reason }) => reason === "exhausted");
    // A colleague discards one of them, and replays another event of the other's transaction, which has just arrived.
    await app.receiver.events.discard(first?.eventId ?? "", { by: "marta", note: "paid by hand" });
    await app.succeeds({ payTxnId: "pay-3", referenceId: "order-3", amount: "31.000000" });
    const newest = (await app.held()).find(({ amount }) => amount === "31.000000");
    await app.receiver.events.replay(newest?.eventId ?? "", { by: "marta", note: "31 is right" });
    await app.receiver.work();
    expect(app.ran.splice(0)).toEqual(["order-3 31.000000"]);
    await app.fails({ payTxnId: "pay-4", referenceId: "order-4" });
    terminal.type("replay 2\r");
    expect(await terminal.ended).toBe(1);
    expect(terminal.output).toContain(`${first?.eventId}  `);
    expect(terminal.output).toContain("is not held: another person may have decided about it already");
    expect(terminal.output).toContain("has changed since it was read: look at it again");
    expect(terminal.output).toContain("1 not found, 1 changed.");
    await app.receiver.work();
    expect(app.ran).toEqual([]);
    expect((await app.held()).map(({ eventId }) => eventId)).toContain(second?.eventId);
  });
});

describe("a decision about many events that is interrupted", () => {
  it("by Ctrl-C names the events that were decided about, and the others", async () => {
    const app = await application();
    for (let n = 0; n < 400; n++) await app.fails({ payTxnId: `pay-${n}` });
    const args = ["discard", "--all", "--reason", "exhausted", "--yes", "--json", ...who];
    const running = new RunningCommand(["events", ...args, "--sqlite", app.database]);
    await running.until(/"outcome":"discarded"/);
    running.process.kill("SIGINT");
    const ended = await running.ended;
    const outcomes = ended.json();
    const count = (outcome: string) => outcomes.filter((one) => one.outcome === outcome).length;
    expect(count("discarded") + count("not-tried")).toBe(400);
    // On a slow machine all of them may have been decided before the signal.
    expect(ended.code).toBe(count("not-tried") === 0 ? 0 : 1);
    expect((await app.receiver.events.counts()).held).toBe(count("not-tried"));
  });
});
