/** Proves the tests of effects: each duty of effects is broken once, and the test that `caughtBy` names must fail. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { EFFECT_MUTANTS } from "./mutants.ts";
import type { Played } from "./play-mistakes.ts";

let played: readonly Played[];

/** Plays all mistakes in another process, whose environment does not say that a test runner has started it. */
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-effects-"));
  try {
    const file = join(folder, "played.json");
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")),
    );
    const args = ["--import=tsx", "test/effects/play-mistakes.ts", file];
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: ["ignore", "ignore", "inherit"] });
    await new Promise((resolve, reject) => child.once("error", reject).once("exit", resolve));
    played = JSON.parse(readFileSync(file, "utf8")) as readonly Played[];
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 600_000);

it("the tests of effects pass on the sources as they are", () => {
  const { passed, failed, errors } = played[0] as Played;
  expect([...failed, ...errors]).toEqual([]);
  expect(passed.length).toBeGreaterThan(30);
});

describe("a mistake in effects is noticed", () => {
  it.each(EFFECT_MUTANTS.map((mutant, number) => ({ ...mutant, number })))("$duty", (mutant) => {
    const { failed, errors } = played[1 + mutant.number] as Played;
    expect(errors).toEqual([]);
    expect(failed.filter((title) => title.startsWith(mutant.caughtBy))).not.toEqual([]);
  });
});
