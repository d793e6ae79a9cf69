/**
 * Runs all tests of effects without a mistake, and then for each mistake the tests that must notice it. Writes the results to
 * the given file, as `Played[]` in the same order.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import type { TestProjectInlineConfiguration } from "vitest/config";
import { createVitest, escapeTestName, type TestModule, type TestProject } from "vitest/node";
import { EFFECT_MUTANTS, type EffectMutant } from "./mutants.ts";

/** The results of the tests with one mistake, or without any. */
export interface Played {
  /** The titles of the tests. */
  readonly passed: readonly string[];
  readonly failed: readonly string[];
  /** Why a file could not be loaded. */
  readonly errors: readonly string[];
}

const conditions = ["payhooks-source", "module", "node", "development|production"];

/** Each mistake has a project of its own, so that its sources are transformed separately. */
function projectOf(mutant: EffectMutant | null, name: string): TestProjectInlineConfiguration {
  return {
    resolve: { conditions },
    ssr: { resolve: { conditions } },
    plugins: [
      {
        name: "one mistake",
        enforce: "pre",
        transform(code, id) {
          if (mutant === null || !id.endsWith(`packages/core/src/${mutant.file}`)) return undefined;
          const { find, put, file } = mutant;
          const times = code.split(find).length - 1;
          if (times !== 1) throw new Error(`This text occurs ${times} times in ${file}, not once: ${find}`);
          return code.replace(find, () => put);
        },
      },
    ],
    test: {
      name,
      include: ["packages/core/test/effects/*.test.ts"],
      // A mistake may make a test wait for something that never happens.
      testTimeout: 20_000,
      isolate: false,
      maxWorkers: 1,
    },
  };
}

const WITHOUT = "none";
const mistakes = new Map(EFFECT_MUTANTS.map((mutant, number) => [String(number), mutant]));
const projects = [
  projectOf(null, WITHOUT),
  ...[...mistakes].map(([name, mutant]) => projectOf(mutant, name)),
];
const vitest = await createVitest(
  "test",
  { config: false, watch: false, reporters: [{}] },
  { test: { projects } },
);

/** The tests that a project runs: all of them without a mistake, and otherwise those that must notice the mistake. */
async function chosenIn(project: TestProject) {
  const { testFiles } = await project.globTestFiles();
  const text = mistakes.get(project.name)?.caughtBy;
  if (text === undefined) return testFiles.map((file) => project.createSpecification(file));
  return testFiles
    .filter((file) => readFileSync(file, "utf8").includes(text))
    .map((file) =>
      project.createSpecification(file, { testNamePattern: new RegExp(escapeTestName(text, false)) }),
    );
}

function playedIn(modules: readonly TestModule[]): Played {
  const titlesOf = (state: "passed" | "failed"): readonly string[] =>
    modules.flatMap(({ children }) => [...children.allTests(state)].map(({ name }) => name));
  const errors = modules.flatMap((module) =>
    module.errors().map(({ message }) => `${basename(module.moduleId)}: ${message}`),
  );
  return { passed: titlesOf("passed"), failed: titlesOf("failed"), errors };
}

const chosen = await Promise.all(vitest.projects.map(chosenIn));
const { testModules } = await vitest.runTestSpecifications(chosen.flat());
const played = [WITHOUT, ...mistakes.keys()].map((name) =>
  playedIn(testModules.filter(({ project }) => project.name === name)),
);
await vitest.close();
const [, , file = ""] = process.argv;
writeFileSync(file, JSON.stringify(played));
