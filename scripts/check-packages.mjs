// Packs every public package as it would be published and has the tarball judged by publint and attw.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { entrySizes } from "./entry-sizes.mjs";

/** Bytes of an entry point, minified and gzipped, with room for a few lines more. Raising one is a decision. */
const SIZE_BUDGET = {
  "@payhooks/client": 11500,
  "@payhooks/core": 48500,
  "@payhooks/core/signature": 4250,
  "@payhooks/core/adapter": 3850,
  "@payhooks/core/fetch": 2950,
  "@payhooks/core/inbox": 25200,
  "@payhooks/core/redis": 25800,
  "@payhooks/core/sqlite": 22000,
  "@payhooks/core/testing": 50200,
  "@payhooks/express": 2600,
  "@payhooks/fastify": 2700,
  "@payhooks/hono": 3100,
  "@payhooks/next": 3500,
  "@payhooks/sandbox": 32500,
};

const directory = mkdtempSync(join(tmpdir(), "payhooks-pack-"));
const failed = [];

/** Runs quietly: what a tool says matters only when it objects. */
function run(command, args, cwd) {
  try {
    return execFileSync(command, args, {
      cwd,
      encoding: "utf8",
      stdio: "pipe",
      shell: process.platform === "win32",
    });
  } catch (error) {
    process.stderr.write(`${error.stdout ?? ""}${error.stderr ?? error.message}\n`);
    failed.push(`${command} ${args.join(" ")}`);
  }
}

for (const name of readdirSync("packages")) {
  const manifest = JSON.parse(readFileSync(`packages/${name}/package.json`, "utf8"));
  if (manifest.private) continue;
  const failedBefore = failed.length;
  const packed = run("pnpm", ["pack", "--json", "--pack-destination", directory], `packages/${name}`);
  if (!packed) continue;
  const { filename } = JSON.parse(packed);
  run("publint", ["run", filename, "--strict"]);
  run("attw", [filename]);
  if (failed.length === failedBefore) process.stdout.write(`${manifest.name}: the tarball is sound\n`);
}

for (const { entry, gzipBytes } of await entrySizes()) {
  const budget = SIZE_BUDGET[entry];
  if (budget !== undefined && gzipBytes <= budget) continue;
  const wanted = budget === undefined ? "has no size budget" : `is larger than its budget of ${budget} bytes`;
  process.stderr.write(`${entry} ${wanted}: ${gzipBytes} bytes, minified and gzipped\n`);
  failed.push(`size of ${entry}`);
}

rmSync(directory, { recursive: true });
if (failed.length > 0) {
  process.stderr.write(`Package checks failed:\n${failed.map((command) => `  ${command}\n`).join("")}`);
  process.exit(1);
}
