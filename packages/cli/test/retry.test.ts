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
    expect(dry.stdout.match(/would be due/g)).toHaveLength(2);
    expect(await receiver.work()).toMatchObject({ ran: 0 });
    const done = await payhooks([...retry, ...who]);
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect(done.stdout).toMatch(/DEPOSIT SUCCESS .* reference order-1 .* is due\n/);
    expect(done.stdout).toContain("2 attempts are due now, or one after the other: 10000 a second.");
    expect(await receiver.work()).toMatchObject({ ran: 2, failed: 0 });
    expect(ran.map((line) => line.split(" ")[0]).sort()).toEqual(["order-1", "order-2"]);
  });

  it("spreads them, so that they do not come at once", async () => {
    const { database, receiver } = await waiting();
    const args = ["--all", "--rate", "1", "--json", "--sqlite", database, ...who];
    const told = (await payhooks(["events", "retry", ...args])).json<{ inMs: number }>();
    expect(told.map(({ inMs }) => inMs)).toEqual([0, 1_000]);
    expect((await receiver.work()).ran).toBeLessThan(2);
  });

  it("takes only what matches, and says so of what does not wait", async () => {
    const { database, receiver, ran } = await waiting();
    const one = ["--all", "--reference", "order-2", "--sqlite", database, ...who];
    expect(await payhooks(["events", "retry", ...one])).toMatchObject({ code: 0 });
    await receiver.work();
    expect(ran).toEqual([expect.stringContaining("order-2")]);
    const again = await payhooks(["events", "retry", ...one]);
    expect(again.stdout).toBe("Nothing that matches waits for its next attempt.\n");
    const unknown = ["f".repeat(48), "--sqlite", database, ...who];
    const missing = await payhooks(["events", "retry", ...unknown]);
    expect(missing).toMatchObject({ code: 1, stdout: expect.stringContaining("waits for no later attempt") });
  });

  it.each([
    [["--sqlite", "x.db", ...who], /Name the events, or give --all/],
    [["--all", "--sqlite", "x.db", "--by", "amina"], /--note is missing/],
    [["--all", "--state", "held", "--sqlite", "x.db", ...who], /leave --state out/],
    [["--all", "--handlers", "a", "--sqlite", "x.db", ...who], /--handlers is not for retry/],
    [["abcd", "--rate", "3", "--sqlite", "x.db", ...who], /--rate goes with --all/],
  ])("refuses %j", async (args, says) => {
    const ended = await payhooks(["events", "retry", ...args]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(says);
  });
});
