import { existsSync, readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";

/** Workspace packages resolve to their TypeScript source: tests need no build and never see a stale one. */
const conditions = ["payhooks-source", "module", "node", "development|production"];

const packagesWithTests = readdirSync("packages").filter((name) => existsSync(`packages/${name}/test`));

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects: [
      ...packagesWithTests.map((name) => ({
        extends: true as const,
        test: { name, include: [`packages/${name}/test/**/*.test.ts`] },
      })),
      { extends: true, test: { name: "workspace", include: ["test/**/*.test.ts"] } },
    ],
  },
});
