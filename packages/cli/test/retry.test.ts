import { describe, expect, it } from "vitest";
import { type Application, application, who } from "./support/application.ts";
import { payhooks } from "./support/run.ts";

/** Two deposits have failed, and wait for an hour. */
async function waiting(): Promise<Application> {
  const app = await application({ maxAttempts: 5, backoffMs: 3_600_000 });
  for (const referenceId of ["order-1", "order-2"]) await app.fails({ referenceId });
  expect(await app.receiver.work()).toMatchObject({ ran: 0 });
  return app;
}

describe("payhooks events retry", () => {
  it("brings the next attempts of all events forward, after a dry run that changes nothing", async () => {
    const { database, receiver, ran } = await waiting();
    const retry = ["events", "retry", "--all", "--rate", "10000", "--sqlite", database];
    const dry = await payhooks([...retry, "--dry-run"]);
    expect(dry).toMatchObject({ code: 0, stderr: "" });
    expect(dry.stdout).toContain("To retry: 2 (2 unfinished).\nNothing was decided.\n");
    expect(await receiver.work()).toMatchObject({ ran: 0 });
    const done = await payhooks([...retry, ...who]);
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect(done.stdout).toMatch(/DEPOSIT SUCCESS .* reference order-1 .* decided\n/);
    expect(done.stdout).toContain("\n2 due now.\n");
    expect(await receiver.work()).toMatchObject({ ran: 2, failed: 0 });
    expect(ran.map((line) => line.split(" ")[0]).sort()).toEqual(["order-1", "order-2"]);
  });

  it("goes on under its name, and brings no attempt forward twice", async () => {
    const { database, receiver } = await waiting();
    const until = new Date(Date.now() + 1_000).toISOString();
    const named = ["events", "retry", "--all", "--name", "bank", "--until", until, "--sqlite", database];
    expect((await payhooks([...named, ...who])).stdout).toContain("2 due now.");
    const again = await payhooks([...named, ...who]);
    expect(again.stdout).toBe(
      `\nAccepted before ${until}.\nTo retry: 0.\nDecided before under this name: 2.\nNothing was decided.\n`,
    );
    expect(await receiver.work()).toMatchObject({ ran: 2 });
  });

  it("takes only what matches, and says so of what does not wait", async () => {
    const { database, receiver, ran } = await waiting();
    const one = ["--all", "--reference", "order-2", "--sqlite", database, ...who];
    expect(await payhooks(["events", "retry", ...one])).toMatchObject({ code: 0 });
    await receiver.work();
    expect(ran).toEqual([expect.stringContaining("order-2")]);
    const again = await payhooks(["events", "retry", ...one]);
    expect(again).toMatchObject({ code: 0, stdout: "\nTo retry: 0.\nNothing was decided.\n" });
  });

  it("fails for an event that is not known, or waits for no attempt, as replay and erase do", async () => {
    const { database, receiver } = await waiting();
    await receiver.events.retryNow({}, { by: "amina", note: "the bank is back" });
    expect(await receiver.work()).toMatchObject({ ran: 2 });
    const [done = { eventId: "" }] = (await receiver.events.list({ state: "finished" })).events;
    const ended = ["events", "retry", done.eventId, "--sqlite", database, ...who];
    expect(await payhooks(ended)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("Skipped: 1 not-waiting."),
    });
    const decisions = [["retry"], ["replay"], ["replay", "--state", "finished", "--yes"], ["erase", "--yes"]];
    for (const decision of decisions) {
      const who = decision[0] === "erase" ? ["--by", "amina"] : ["--by", "amina", "--note", "a typing error"];
      const args = ["events", ...decision, "f".repeat(48), "--sqlite", database, ...who];
      expect({ decision, code: (await payhooks(args)).code }).toEqual({ decision, code: 1 });
    }
  });

  it.each([
    [["--sqlite", "x.db", ...who], /Name the events, or give --all/],
    [["--all", "--sqlite", "x.db", "--by", "amina"], /--note is missing/],
    [["--all", "--state", "held", "--sqlite", "x.db", ...who], /leave --state out/],
    [["--all", "--handlers", "a", "--sqlite", "x.db", ...who], /--handlers is not for this retry/],
    [["abcd", "--tenant", "3", "--sqlite", "x.db", ...who], /--tenant goes with --all/],
  ])("refuses %j", async (args, says) => {
    const ended = await payhooks(["events", "retry", ...args]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(says);
  });
});
