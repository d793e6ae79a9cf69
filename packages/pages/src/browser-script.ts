import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

/**
 * The TypeScript of a page's script, and what it imports, as one script for browsers. The build calls this and publishes the text
 * (`tsup.base.ts`), so users need no bundler. The sources call it whenever a browser asks for the script.
 */
export function browserScript(file: URL): string {
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(file)],
    bundle: true,
    format: "iife",
    platform: "browser",
    target: "es2022",
    charset: "utf8",
    // A script has effects, whatever the manifest of its package says about the modules that users import.
    ignoreAnnotations: true,
    write: false,
  });
  return outputFiles.map(({ text }) => text).join("");
}
