import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../package/workspace.ts";
import { isLong, report, TIMEOUT_MS } from "./report.ts";

/** The part of Stryker's report that is counted. */
interface MutationReport {
  readonly files: Readonly<Record<string, { readonly mutants: readonly { readonly status: string }[] }>>;
}

/** Runs Stryker as a process of its own: one that this runner has not told that it runs tests. */
function mutate(): Promise<number | null> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
  const stryker = join(root, "node_modules/.bin/stryker");
  const child = spawn(stryker, ["run"], { cwd: root, env, stdio: "inherit" });
  return new Promise((resolve, reject) => child.once("error", reject).once("exit", resolve));
}

describe("the sources that decide what is believed", { timeout: TIMEOUT_MS }, () => {
  it("cannot be changed without a test that fails: nine changes out of ten, or more", async ({ skip }) => {
    skip(!isLong, "takes hours: npm run test:security has it, npm run test:mutants runs it alone");
    const exit = await mutate();
    const written = readFileSync(join(root, ".stryker-tmp/mutation.json"), "utf8");
    const { files } = JSON.parse(written) as MutationReport;
    const statuses = Object.values(files).flatMap(({ mutants }) => mutants.map(({ status }) => status));
    const killed = statuses.filter((status) => status === "Killed" || status === "Timeout").length;
    report({
      proof: "changed sources (Stryker)",
      cases: statuses.length,
      mutants: { killed, of: statuses.length },
      note: `${Object.keys(files).length} files; survivors: docs/concepts/security.md`,
    });
    expect(killed / statuses.length).toBeGreaterThanOrEqual(0.9);
    expect(exit).toBe(0);
  });
});
