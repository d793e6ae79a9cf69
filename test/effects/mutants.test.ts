/** Proves the tests of effects: each line of what effects must get right is broken once, and a test notices. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { EFFECT_MUTANTS } from "./mutants.ts";

const folder = mkdtempSync(join(tmpdir(), "payhooks-effects-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Report {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

/** Runs the tests with one mistake, or with none; the titles of those that ran, and of those that failed. */
async function run(mutant: number): Promise<{ readonly ran: number; readonly failed: readonly string[] }> {
  const file = join(folder, `${mutant}.json`);
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
  const args = [
    "run",
    "--config",
    "test/effects/mutants.config.ts",
    "--reporter=json",
    `--outputFile=${file}`,
  ];
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", ...args], {
    cwd: root,
    env: { ...env, PAYHOOKS_MUTANT: String(mutant) },
    stdio: "ignore",
  });
  await new Promise((resolve, reject) => child.once("error", reject).once("exit", resolve));
  const { testResults } = JSON.parse(readFileSync(file, "utf8")) as Report;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = tests.filter(({ status }) => status === "failed").map(({ title }) => title);
  return { ran: tests.length, failed };
}

it("the tests of effects pass on the sources as they are", async () => {
  const { ran, failed } = await run(-1);
  expect(failed).toEqual([]);
  expect(ran).toBeGreaterThan(30);
});

describe("a mistake in effects is noticed", () => {
  it.each(EFFECT_MUTANTS.map((mutant, number) => ({ ...mutant, number })))("$line", async (mutant) => {
    const { failed } = await run(mutant.number);
    expect(failed.filter((title) => title.startsWith(mutant.caughtBy))).not.toEqual([]);
  });
});
