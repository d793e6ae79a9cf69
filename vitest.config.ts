import { existsSync, readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { hasRedis } from "./scripts/redis-server.mjs";

/** Workspace packages resolve to their TypeScript source: tests need no build and never see a stale one. */
const conditions = ["payhooks-source", "module", "node", "development|production"];

/** Suites that start a Redis of their own. */
const onRedis = [
  "test/faults/**/*.test.ts",
  "test/contract/redis*.test.ts",
  "test/examples/next.test.ts",
  "test/package/next.test.ts",
];

const packagesWithTests = readdirSync("packages").filter((name) => existsSync(`packages/${name}/test`));

/** What a package's tests need once: the command line as one file. */
const setupOf = (name: string): string[] => (name === "cli" ? ["packages/cli/test/support/bundle.ts"] : []);

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects: [
      ...packagesWithTests.map((name) => ({
        extends: true as const,
        test: {
          name,
          include: [`packages/${name}/test/**/*.test.ts`],
          globalSetup: setupOf(name),
          exclude: ["**/node_modules/**", "**/test/browser/**"],
        },
      })),
      {
        extends: true,
        test: {
          name: "workspace",
          include: ["test/**/*.test.ts"],
          exclude: ["**/node_modules/**", "test/browser/**", "test/security/**", ...onRedis],
        },
      },
      {
        extends: true,
        test: {
          name: "security",
          include: ["test/security/**/*.test.ts"],
          globalSetup: "test/security/global-setup.ts",
        },
      },
      ...(hasRedis()
        ? [
            {
              extends: true as const,
              test: {
                name: "faults",
                include: onRedis,
                globalSetup: "test/faults/harness/global-setup.ts",
                pool: "forks" as const,
                maxWorkers: 1,
                fileParallelism: false,
                // After the others: what is measured in seconds here has both cores to itself.
                sequence: { groupOrder: 1 },
              },
            },
          ]
        : []),
    ],
  },
});
