import { existsSync, readdirSync } from "node:fs";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { postgresBin, postgresSuites } from "./scripts/postgres-server.mjs";
import { hasRedis, redisSuites } from "./scripts/redis-server.mjs";

/** Workspace packages resolve to their TypeScript source: tests need no build and never see a stale one. */
const conditions = ["payhooks-source", "module", "node", "development|production"];

const withTests = (folder: string): string[] =>
  readdirSync(folder).filter((name) => existsSync(`${folder}/${name}/test`));

/** What a package's tests need once: the command line as one file. */
const setupOf = (name: string): string[] => (name === "cli" ? ["packages/cli/test/support/bundle.ts"] : []);

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects: [
      ...withTests("packages").map((name) => ({
        extends: true as const,
        test: {
          name,
          include: [`packages/${name}/test/**/*.test.ts`],
          globalSetup: setupOf(name),
          exclude: ["**/node_modules/**", "**/test/browser/**"],
        },
      })),
      ...withTests("examples").map((name) => ({
        extends: true as const,
        test: { name: `example-${name}`, include: [`examples/${name}/test/**/*.test.ts`] },
      })),
      {
        extends: true,
        test: {
          name: "workspace",
          include: ["test/**/*.test.ts"],
          exclude: [
            "**/node_modules/**",
            "test/browser/**",
            "test/security/**",
            "test/faults/**",
            ...redisSuites,
            ...(postgresBin() === null ? postgresSuites : []),
          ],
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
      // After the others, and one after the other: what is measured in seconds here has both cores to itself.
      inTurn("faults-sqlite", ["test/faults/sqlite.test.ts"], 1),
      ...(hasRedis() ? [inTurn("faults", redisSuites, 2)] : []),
    ],
  },
});

/** A project whose files run one by one, once those of a lower order have ended. */
function inTurn(name: string, include: string[], groupOrder: number): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: {
      name,
      include,
      globalSetup: "test/faults/harness/global-setup.ts",
      pool: "forks",
      maxWorkers: 1,
      fileParallelism: false,
      sequence: { groupOrder },
    },
  };
}
