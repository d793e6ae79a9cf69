import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { printSummary, type Result } from "../../examples/express/src/report.ts";
import { scenario } from "../../examples/express/src/service.ts";
import { root } from "../package/workspace.ts";
import { RunningProgram } from "./program.ts";

const demo = "examples/express/src/demo.ts";
const steps = scenario();

describe("npm start", () => {
  it("runs the file that these tests run", () => {
    expect(readFileSync(join(root, "scripts/run.mjs"), "utf8")).toContain(`"${demo}"`);
  });

  it("with --once shows every kind of delivery and its outcome, and ends with 0", async () => {
    const program = new RunningProgram(demo, ["--once"]);
    expect(await program.exitCode).toBe(0);
    expect(program.output).toMatch(/^ {2}http:\/\/127\.0\.0\.1:\d+\/ +dashboard$/m);
    for (const { what } of steps) expect(program.output).toContain(what);
    const held = steps.flatMap(({ expected }) => expected.held ?? []);
    expect(summaryOf(program.output)).toMatchObject({
      deliveries: steps.length,
      "acknowledged (200)": steps.filter(({ expected }) => expected.status === 200).length,
      "handler runs": steps.flatMap(({ expected }) => expected.ran).length,
      "held for a person": held.length,
      "as expected": steps.length,
    });
    for (const reason of held) expect(program.output).toMatch(new RegExp(`^  ${reason} `, "m"));
  });

  it("goes on listening without it, and finishes what runs when it is told to stop", async () => {
    const program = new RunningProgram(demo, [], { PORT: "0", SANDBOX_PORT: "0" });
    try {
      const [, dashboard = "", console = ""] = await program.until(
        /Listening\. Send more from (\S+), and see what became of it at (\S+)\. Ctrl-C/,
      );
      expect(await (await fetch(dashboard)).text()).toContain("order-1001");
      const page = await (await fetch(`${console}?state=held`)).text();
      for (const reason of steps.flatMap(({ expected }) => expected.held ?? []))
        expect(page).toContain(reason);
      program.signal("SIGINT");
      expect(await program.exitCode).toBe(0);
      expect(program.output).toContain("Everything that was accepted is finished.");
    } finally {
      program.kill();
    }
  });
});

describe("the demo's summary, whose verdict is its exit code", () => {
  afterEach(() => vi.restoreAllMocks());

  const asExpected = (): Result[] => steps.map((step) => ({ step, actual: step.expected }));

  /** The verdict, and what was printed with it. */
  function summarize(results: readonly Result[]): [boolean, string] {
    const lines: string[] = [];
    vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line));
    return [printSummary(results, []), lines.join("\n")];
  }

  it("is good when every outcome is the expected one", () => {
    expect(summarize(asExpected())[0]).toBe(true);
  });

  it.each([
    ["the answer", { status: 500 }],
    ["what ran", { ran: ["deposit.SUCCESS", "deposit.SUCCESS"] }],
    ["what was held", { held: "malformed" }],
  ])("is bad when %s of a single delivery is not the expected one", (_what, change) => {
    const results = asExpected();
    const [first, ...others] = results;
    if (first === undefined) throw new Error("the scenario is empty");
    const [ok, printed] = summarize([{ ...first, actual: { ...first.actual, ...change } }, ...others]);
    expect(ok).toBe(false);
    expect(summaryOf(printed)).toMatchObject({ deliveries: results.length, "as expected": others.length });
  });
});

/** The numbers of the printed summary. */
function summaryOf(output: string): Record<string, number> {
  const rows = output.matchAll(/^ {2}(\S.*?) +(\d+)$/gm);
  return Object.fromEntries([...rows].map(([, name = "", value]) => [name, Number(value)]));
}
