// Gives all packages their next version, and moves what .changeset says into CHANGELOG.md.
// `changeset version` is not used: it writes a changelog for each package, and it would raise the adapters to 1.0.0
// because their peer, the core, gets a version out of their range. Here they are all released together.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { HEADINGS, latestVersion, nextVersion, withSection } from "./next-version.mjs";

const plan = "node_modules/.cache/payhooks-release.json";
mkdirSync("node_modules/.cache", { recursive: true });
const shell = process.platform === "win32";
execFileSync("changeset", ["status", "--output", plan], { stdio: ["ignore", "ignore", "inherit"], shell });
const { changesets } = JSON.parse(readFileSync(plan, "utf8"));
if (changesets.length === 0) {
  process.stderr.write("Nothing waits for a release. Describe a change with `npm run changeset` first.\n");
  process.exit(1);
}

const changes = changesets.map(({ summary, releases }) => ({
  kind: Object.keys(HEADINGS).find((kind) => releases.some(({ type }) => type === kind)) ?? "patch",
  text: summary.replaceAll("\n", "\n  "),
}));
const manifests = readdirSync("packages")
  .map((name) => `packages/${name}/package.json`)
  .map((path) => ({ path, text: readFileSync(path, "utf8") }))
  .filter(({ text }) => JSON.parse(text).private !== true);
const current = latestVersion(manifests.map(({ text }) => JSON.parse(text).version));
const version = nextVersion(
  current,
  changes.map(({ kind }) => kind),
);
for (const { path, text } of manifests) {
  writeFileSync(path, text.replace(/"version": "[^"]*"/, `"version": "${version}"`));
}
writeFileSync("CHANGELOG.md", withSection(readFileSync("CHANGELOG.md", "utf8"), version, changes));
for (const { id } of changesets) rmSync(`.changeset/${id}.md`);
process.stdout.write(`${current} → ${version}. Read CHANGELOG.md, then commit.\n`);
