/** Mutation testing of what decides whether a delivery is believed and run: `npm run test:mutants`. */
export default {
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner"],
  vitest: { configFile: "vitest.mutants.config.ts" },
  mutate: [
    "protocol/json.ts",
    ...["canonical", "rsa", "hmac", "keys"].map((name) => `signature/${name}.ts`),
    ...["callback", "flow", "judgement", "keyring", "readings"].map((name) => `flows/${name}.ts`),
    ...[
      "accept-into-record",
      "decisions",
      "leased-run",
      "record",
      "reference-claim",
      "schedule",
      "table",
    ].map((name) => `inbox/record/${name}.ts`),
  ].map((file) => `packages/core/src/${file}`),
  coverageAnalysis: "perTest",
  concurrency: 2,
  // Long, so that a busy machine is not taken for a change that never ends.
  timeoutMS: 30_000,
  reporters: ["clear-text", "json"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: ".stryker-tmp/mutation.json" },
  tempDirName: ".stryker-tmp/sandboxes",
  ignorePatterns: ["dist", ".next", "coverage", "docs", "examples", "test/runtimes", "test/browser"],
  thresholds: { high: 95, low: 90, break: 90 },
  allowEmpty: true,
};
