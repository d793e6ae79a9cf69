import { expect, it } from "vitest";
import { RunningProgram } from "./program.ts";

it("npm start -- --once --crash accepts a deposit, kills its process, and handles it once in the next", {
  timeout: 60_000,
}, async () => {
  const program = new RunningProgram("examples/express/src/demo.ts", ["--once", "--crash"]);
  try {
    expect(await program.exitCode).toBe(0);
  } finally {
    program.kill();
  }
  const lines = program.output.split("\n");
  const at = (pattern: RegExp): number => {
    const found = lines.findIndex((line) => pattern.test(line));
    return found < 0 ? expect.fail(`nothing like ${pattern} in\n${program.output}`) : found;
  };
  const order = [
    at(/order-2001: 200/),
    at(/killed \(SIGKILL\) before its handler ended/),
    at(/handler begins, attempt 2, [0-9a-f]{48}\.deposit$/),
    at(/handler ends, +attempt 2, [0-9a-f]{48}\.deposit$/),
    at(/sends the same deposit again: 200/),
    at(/with 0 events unfinished/),
  ];
  expect(order).toEqual([...order].sort((a, b) => a - b));
  expect(at(/handler begins, attempt 1, /)).toBeLessThan(at(/killed/));
  expect(lines.filter((line) => /handler ends/.test(line))).toHaveLength(1);
});
