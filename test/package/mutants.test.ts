import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { root } from "./workspace.ts";

/** Imports the exports of a file at the root. These are no part of any TypeScript project. */
async function setUp(file: string): Promise<unknown> {
  return ((await import(join(root, file))) as { readonly default: unknown }).default;
}
const stryker = (await setUp("stryker.config.mjs")) as { readonly mutate: readonly string[] };
const vitest = (await setUp("vitest.mutants.config.ts")) as {
  readonly test: { readonly include: readonly string[] };
};

// A path that leads nowhere is no error for either program: the changes are then tried against fewer tests.
it("the sources that Stryker changes, and the tests that it runs, are where its set-up says", () => {
  const tests = vitest.test.include;
  const anyTest = tests.filter((path) => path.endsWith("/*.test.ts"));
  const found = anyTest.filter((path) =>
    readdirSync(join(root, dirname(path))).some((name) => name.endsWith(".test.ts")),
  );
  expect(found).toEqual(anyTest);
  const files = [...stryker.mutate, ...tests.filter((path) => !anyTest.includes(path))];
  expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(files.length).toBeGreaterThan(15);
});
