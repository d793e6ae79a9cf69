// Says whether the packages can be released, and if not, what to do first.
import { readdirSync, readFileSync } from "node:fs";
import { releaseProblems } from "./release-problems.mjs";

const manifestIn = (folder) => JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));

const { GITHUB_REPOSITORY = null, GITHUB_REF_TYPE, GITHUB_REF_NAME = null } = process.env;
const problems = releaseProblems({
  repository: manifestIn(".").repository,
  versions: readdirSync("packages")
    .map((name) => manifestIn(`packages/${name}`))
    .filter((manifest) => manifest.private !== true)
    .map(({ version }) => version),
  changelog: readFileSync("CHANGELOG.md", "utf8"),
  changesets: readdirSync(".changeset").filter((file) => file.endsWith(".md") && file !== "README.md"),
  tag: GITHUB_REF_TYPE === "tag" ? GITHUB_REF_NAME : null,
  building: GITHUB_REPOSITORY,
});
if (problems.length > 0) {
  process.stderr.write(`Not ready to be released:\n${problems.map((problem) => `- ${problem}\n`).join("")}`);
  process.exit(1);
}
process.stdout.write("Ready to be released.\n");
