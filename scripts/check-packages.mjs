// Packs every public package as it would be published and has the tarball judged by publint and attw.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

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

rmSync(directory, { recursive: true });
if (failed.length > 0) {
  process.stderr.write(`Package checks failed:\n${failed.map((command) => `  ${command}\n`).join("")}`);
  process.exit(1);
}
