import { defineConfig } from "vitest/config";

/** Tests in Chromium, apart from `npm test`, which needs no browser: `npm run test:browser`. */
const conditions = ["payhooks-source", "module", "node", "development|production"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: "browser",
    include: ["packages/*/test/browser/**/*.test.ts", "test/browser/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
