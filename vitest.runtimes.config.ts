import { defineConfig } from "vitest/config";

/** What needs other runtimes, and so is no part of `npm test`: `npm run test:runtimes`. */
const conditions = ["payhooks-source", "module", "node", "development|production"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: "runtimes",
    include: ["test/runtimes/**/*.runtimes.ts"],
    globalSetup: "test/runtimes/global-setup.ts",
    maxWorkers: 2,
  },
});
