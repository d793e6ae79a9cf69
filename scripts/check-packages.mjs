// Packs every public package as it would be published, has the tarball judged by publint and attw, and rehearses its
// publication.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { entrySizes } from "./entry-sizes.mjs";

/** Bytes of an entry point, minified and gzipped, with room for a few lines more. Raising one is a decision. */
const SIZE_BUDGET = {
  "@payhooks/client": 15_100,
  "@payhooks/core": 94_200,
  "@payhooks/core/sources": 21_000,
  "@payhooks/core/signature": 6200,
  "@payhooks/core/adapter": 7000,
  "@payhooks/core/fetch": 6100,
  "@payhooks/core/events": 20_000,
  "@payhooks/core/inbox": 60_300,
  "@payhooks/core/postgres": 54_200,
  "@payhooks/core/mysql": 49_700,
  "@payhooks/core/redis": 51_500,
  "@payhooks/core/sqlite": 47_500,
  "@payhooks/core/durable-object": 43_600,
  "@payhooks/core/seal": 11_100,
  "@payhooks/core/alerts": 8200,
  "@payhooks/core/shadow": 4600,
  "@payhooks/core/effects": 6_400,
  "@payhooks/core/effects/postgres": 10_000,
  "@payhooks/core/effects/mysql": 8_700,
  "@payhooks/core/effects/sqlite": 6400,
  "@payhooks/core/metrics": 2300,
  "@payhooks/core/otel": 4800,
  "@payhooks/core/testing": 96_800,
  "@payhooks/core/testing/store": 19900,
  "@payhooks/express": 5700,
  "@payhooks/fastify": 5800,
  "@payhooks/hono": 6200,
  "@payhooks/next": 6700,
  "@payhooks/lambda": 6200,
  "@payhooks/nestjs": 9000,
  "@payhooks/console": 41_200,
  "@payhooks/console/express": 41_200,
  "@payhooks/console/fastify": 41_200,
  "@payhooks/console/hono": 41_200,
  "@payhooks/console/next": 41_200,
  "@payhooks/sandbox": 36_500,
};

const directory = mkdtempSync(join(tmpdir(), "payhooks-pack-"));
const failed = [];

/** Runs quietly: the output of a tool matters only if it fails. */
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
  // Under a tag of its own: npm refuses to move `latest` to a version that is not the highest.
  run("npm", [
    "publish",
    filename,
    "--dry-run",
    "--access",
    "public",
    "--ignore-scripts",
    "--tag",
    "rehearsal",
  ]);
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
