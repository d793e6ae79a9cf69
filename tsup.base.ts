import { defineConfig } from "tsup";

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
    treeshake: false,
    // Not every runtime knows Node's modules without it.
    removeNodeProtocol: false,
  });
