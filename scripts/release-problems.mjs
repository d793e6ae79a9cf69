// The faults that keep a release from going out, in words that say how to mend them.

const ADDRESS = /^https:\/\/github\.com\/[\w.-]+\/[\w.-]+(?<!\.git)$/;

/** Empty when all is well. `tag` and `building` are null outside of the workflow that publishes. */
export function releaseProblems({ repository, versions, changelog, changesets, tag, building }) {
  const [version, ...others] = [...new Set(versions)];
  const problems = [];
  if (repository === "") {
    problems.push(
      'The repository is not known. Set `repository` in the package.json of the root, such as "https://github.com/example/payhooks": the addresses in every published package follow from it, and npm needs it to prove where a package was built.',
    );
  } else if (!ADDRESS.test(repository)) {
    problems.push(
      `\`repository\` in the package.json of the root is "${repository}". It must look like "https://github.com/example/payhooks", without ".git" at its end.`,
    );
  } else if (building !== null && repository !== `https://github.com/${building}`) {
    problems.push(
      `\`repository\` in the package.json of the root is "${repository}", but this workflow runs in "https://github.com/${building}". npm would refuse the proof of where the packages were built. Correct one of the two.`,
    );
  }
  if (others.length > 0) {
    problems.push(
      `The packages have different versions: ${[version, ...others].join(", ")}. They are released together. Write the latest of these into all package.json files in packages/.`,
    );
  }
  if (changesets.length > 0) {
    problems.push(
      `Changes wait for a version: ${changesets.join(", ")}. Run \`npm run release:prepare\`, and commit what it wrote.`,
    );
  }
  if (!changelog.includes(`\n## ${version}\n`)) {
    problems.push(
      `CHANGELOG.md has no section "## ${version}". Write one, or run \`npm run release:prepare\`.`,
    );
  }
  if (tag !== null && tag !== `v${version}`) {
    problems.push(
      `The release is tagged ${tag}, but the packages have the version ${version}. Tag v${version}.`,
    );
  }
  return problems;
}
