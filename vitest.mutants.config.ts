import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

/**
 * The fast tests that exercise the mutated sources directly: `npm run test:mutants`. Stryker runs them in a copy of the
 * workspace whose installed packages are links to this one, so the core is found by its path in the copy.
 */
const { exports } = JSON.parse(readFileSync("packages/core/package.json", "utf8")) as {
  exports: Readonly<Record<string, { readonly "payhooks-source"?: string }>>;
};

export default defineConfig({
  resolve: {
    alias: Object.entries(exports).flatMap(([path, { "payhooks-source": source }]) =>
      source === undefined
        ? []
        : [
            {
              find: new RegExp(`^@payhooks/core${path.slice(1)}$`),
              replacement: resolve("packages/core", source),
            },
          ],
    ),
    conditions: ["payhooks-source", "module", "node", "development|production"],
  },
  test: {
    globalSetup: "test/mutants/key-pairs.ts",
    setupFiles: "test/mutants/same-key-pairs.ts",
    // Each change runs the tests once more: the modules are loaded once for all files.
    isolate: false,
    include: [
      ...["protocol", "signature", "flows", "memory", "inbox/record"].map(
        (folder) => `packages/core/test/${folder}/*.test.ts`,
      ),
      "packages/core/test/receiver/runner.test.ts",
      "test/security/oracle-sample.test.ts",
      "test/vectors/vectors.test.ts",
      "test/contract/memory.test.ts",
    ],
    // As in stryker.config.mjs: a busy machine is no reason to call a change noticed.
    testTimeout: 30_000,
    // The same random cases in every run, so that a survivor is one in the next run too.
    env: { PAYHOOKS_SEED: "7" },
  },
});
