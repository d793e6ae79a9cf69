/** Mutation testing of what decides whether a delivery is believed and run: `npm run test:mutants`. */
export default {
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner"],
  vitest: { configFile: "vitest.mutants.config.ts" },
  mutate: [
    "packages/core/src/protocol/json.ts",
    "packages/core/src/signature/{canonical,rsa,hmac,keys}.ts",
    "packages/core/src/flows/{callback,flow,judgement,keyring,readings}.ts",
    "packages/core/src/inbox/record/{accept,decisions,record,reference-claim,run,schedule,table}.ts",
  ],
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
