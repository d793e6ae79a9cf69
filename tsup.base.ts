import { readFileSync } from "node:fs";
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

/** The build of the package in this directory: ESM and CommonJS with declarations for both, of each entry point in its manifest. */
export const libraryBuild = (): ReturnType<typeof defineConfig> =>
  defineConfig({
    entry: entryPoints(),
    format: ["esm", "cjs"],
    // `npm run check` checks the types, of the tests too. To check them here as well takes half of the time of a build.
    dts: { compilerOptions: { noCheck: true } },
    target: "node20",
    platform: "node",
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

/** The sources of the entry points in the manifest's `exports`, by what is built of each. */
function entryPoints(): Record<string, string> {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as {
    readonly exports: Readonly<Record<string, { "payhooks-source"?: string; import: { default: string } }>>;
  };
  return Object.fromEntries(
    Object.values(exports).flatMap(({ "payhooks-source": source, import: built }) =>
      source === undefined ? [] : [[built.default.slice("./dist/".length, -".js".length), source]],
    ),
  );
}
