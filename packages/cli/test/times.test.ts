import { describe, expect, it } from "vitest";
import { parseTime } from "../src/command-line/time.ts";
import { application, who } from "./support/application.ts";
import { payhooks } from "./support/run.ts";

const NOW = Date.parse("2026-03-10T12:00:00Z");

describe("a time on the command line", () => {
  it.each([
    ["2026-03-01", "2026-03-01T00:00:00.000Z"],
    ["2028-02-29", "2028-02-29T00:00:00.000Z"],
    ["2026-03-01T12:30Z", "2026-03-01T12:30:00.000Z"],
    ["2026-03-01T23:59:59.5Z", "2026-03-01T23:59:59.500Z"],
    ["2026-03-01T12:30:15.123456789Z", "2026-03-01T12:30:15.123Z"],
    ["2026-03-01 12:30:15+03:00", "2026-03-01T09:30:15.000Z"],
    ["2026-03-01T00:30:00-11:30", "2026-03-01T12:00:00.000Z"],
    ["90s", "2026-03-10T11:58:30.000Z"],
    ["2d", "2026-03-08T12:00:00.000Z"],
    // Before anything was accepted.
    ["999999w", "1970-01-01T00:00:00.000Z"],
  ])("is %s", (text, iso) => {
    expect(new Date(parseTime(text, NOW) ?? Number.NaN).toISOString()).toBe(iso);
  });

  it("is refused if the day or the time does not exist, or if a text follows it", () => {
    const wrong = [
      ...["2026-11-31", "2026-02-30", "2027-02-29", "2026-00-10", "2026-13-01", "2026-03-00", "2026-03"],
      ...["2026-03-011", "2026-3-1", "2026-03-01 lunch", "2026-03-01Z", "2026-03-01T", "2026-03-01T12"],
      ...["2026-03-01T24:00", "2026-03-01T24:00Z", "2026-03-01T23:60Z", "2026-03-01T23:59:60Z"],
      ...["2026-03-01T1:00", "2026-03-01T12:00+24:00", "2026-03-01T12:00+03:60", "2026-03-01T12:00+3"],
      ...["2026-03-01T12:00 (noon)", "2026-03-01T12:00:00.Z", "2026-02-29T12:00", "2026-11-31T12:00+03:00"],
      ...["", " ", "yesterday", "1.5h", "-1h", "1y", "1772323200000"],
    ];
    expect(wrong.filter((text) => parseTime(text, NOW) !== null)).toEqual([]);
  });

  it("is in the zone of the machine if it names none, and is refused if the clocks there skip it", async () => {
    const { database } = await application();
    const rangeOf = async (since: string): Promise<string> => {
      const args = ["events", "erase", "--all", "--state", "finished", "--dry-run", "--since", since];
      const { stdout, stderr } = await payhooks([...args, "--sqlite", database], {
        env: { TZ: "America/New_York" },
      });
      return stdout + stderr;
    };
    expect(await rangeOf("2026-07-01T12:00")).toContain("Accepted at 2026-07-01T16:00:00.000Z or later.\n");
    expect(await rangeOf("2026-03-08")).toContain("Accepted at 2026-03-08T00:00:00.000Z or later.\n");
    expect(await rangeOf("2026-03-08T02:30")).toContain("--since must be a time that there is");
  });

  it("is refused if there is no such day, by every command that takes it", async () => {
    const inbox = ["--sqlite", "x.db", ...who];
    for (const option of ["--since", "--until"]) {
      for (const command of [
        ["events"],
        ["events", "erase", "--all", "--state", "finished", "--yes"],
        ["events", "discard", "--all", "--reason", "exhausted", "--yes"],
      ]) {
        const ended = await payhooks([...command, option, "2026-11-31", ...inbox]);
        expect(ended).toMatchObject({ code: 2, stdout: "" });
        expect(ended.stderr).toMatch(
          RegExp(`${option} must be a time that there is, .*; it is "2026-11-31"`),
        );
      }
    }
  });

  it("is shown as it was understood, before a decision", async () => {
    const app = await application();
    await app.fails({ referenceId: "order-1" });
    const range = ["--since", "2020-01-01", "--until", "2099-01-01T00:00:00+03:00", "--sqlite", app.database];
    const says = "\nAccepted at 2020-01-01T00:00:00.000Z or later, and before 2098-12-31T21:00:00.000Z.\nTo ";
    for (const decision of [
      ["erase", "--all", "--state", "held", "--unfinished"],
      ["retry", "--all"],
      ["discard", "--all", "--reason", "exhausted"],
    ]) {
      const { stdout } = await payhooks(["events", ...decision, "--dry-run", ...range]);
      expect(stdout).toContain(says);
    }
  });
});
