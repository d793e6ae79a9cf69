import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "tsup";
import type { TestProject } from "vitest/node";
import { browserScripts } from "../../../../tsup.base.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The command in one file, made of the sources, so that each start of it is quick. */
    payhooks: string;
  }
}

/** Bundles the command once for all tests. */
export async function setup(project: TestProject): Promise<() => void> {
  // Inside of the package: what stays outside of the bundle, the optional peers, is found from there.
  const directory = fileURLToPath(
    new URL(`../../node_modules/.payhooks-test-${process.pid}`, import.meta.url),
  );
  await build({
    config: false,
    entry: { payhooks: fileURLToPath(new URL("../../src/payhooks.ts", import.meta.url)) },
    outDir: directory,
    format: "esm",
    outExtension: () => ({ js: ".mjs" }),
    platform: "node",
    target: "node20",
    noExternal: [/^(?!(?:ioredis|libsql|better-sqlite3)$)/],
    external: ["ioredis", "libsql", "better-sqlite3"],
    splitting: true,
    esbuildPlugins: [browserScripts],
    silent: true,
    // Bundled CommonJS asks for Node's own modules.
    banner: {
      js: `import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);`,
    },
    esbuildOptions: (options) => {
      options.conditions = ["payhooks-source", "module", "node"];
    },
  });
  project.provide("payhooks", `${directory}/payhooks.mjs`);
  return () => rmSync(directory, { recursive: true, force: true });
}
