import { pathToFileURL } from "node:url";
import { defineConfig, type Options } from "tsup";
import { tsImport } from "tsx/esm/api";

type Plugin = NonNullable<Options["esbuildPlugins"]>[number];

/**
 * Runs each module `*.script.ts`, and puts the texts that its functions return in its place. These are the scripts of the pages:
 * users get them as texts, without what bundles them.
 */
export const browserScripts: Plugin = {
  name: "browser-scripts",
  setup(build) {
    build.onLoad({ filter: /\.script\.ts$/ }, async ({ path }) => {
      const made: Record<string, () => string> = await tsImport(pathToFileURL(path).href, import.meta.url);
      const exported = Object.entries(made).map(
        ([name, script]) => `export const ${name} = () => ${JSON.stringify(script())};\n`,
      );
      return { contents: exported.join("") };
    });
  },
};

/** The build of one package: ESM and CommonJS with declarations for both, from the given entry files. */
export const libraryBuild = (entry: Record<string, string>): ReturnType<typeof defineConfig> =>
  defineConfig({
    entry,
    format: ["esm", "cjs"],
    dts: true,
    target: "node20",
    platform: "node",
    sourcemap: true,
    clean: true,
    // Entry points share chunks, so that an error class is the same class whichever entry it comes from.
    splitting: true,
    // The private packages of this workspace are not published: what uses them brings them along.
    noExternal: ["@payhooks/pages"],
    esbuildPlugins: [browserScripts],
    treeshake: false,
    // Not every runtime knows Node's modules without it.
    removeNodeProtocol: false,
  });
