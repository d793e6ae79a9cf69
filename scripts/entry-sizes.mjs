// The size of each entry point in a user's bundle: minified, with its imports from its own package and from other
// packages of this workspace, and without the peers that users install.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "tsup";

const root = resolve(fileURLToPath(import.meta.url), "../..");

/** The entry points of every public package, from the packages as they are built. */
export async function entrySizes() {
  const entries = readdirSync(join(root, "packages")).flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"));
    if (manifest.private) return [];
    return Object.entries(manifest.exports ?? {}).flatMap(([path, target]) =>
      typeof target === "string"
        ? []
        : [
            {
              entry: manifest.name + path.slice(1),
              file: join(root, "packages", folder, target.import.default),
            },
          ],
    );
  });
  const outDir = mkdtempSync(join(tmpdir(), "payhooks-sizes-"));
  try {
    await build({
      config: false,
      entry: Object.fromEntries(entries.map(({ file }, index) => [`entry-${index}`, file])),
      outDir,
      format: "esm",
      outExtension: () => ({ js: ".mjs" }),
      platform: "node",
      target: "node20",
      minify: true,
      splitting: false,
      noExternal: [/^@payhooks\//, "lru-cache"],
      external: [/^[^./]/],
      silent: true,
    });
    return entries.map(({ entry }, index) => {
      const code = readFileSync(join(outDir, `entry-${index}.mjs`));
      return { entry, minifiedBytes: code.byteLength, gzipBytes: gzipSync(code).byteLength };
    });
  } finally {
    rmSync(outDir, { recursive: true });
  }
}
