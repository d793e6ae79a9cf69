// The project's addresses, for the manifests that are published. The one place that says so is `repository` in the package.json
// of the root, such as "https://github.com/example/payhooks".
const { readFileSync } = require("node:fs");
const { join, relative } = require("node:path");

const root = join(__dirname, "..");

/** The fields of one package's manifest; none while the root does not say where the project lives. */
function addressesOf(directory) {
  const { repository } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return repository === "" ? {} : addressesIn(repository, relative(root, directory).replaceAll("\\", "/"));
}

function addressesIn(repository, directory) {
  return {
    homepage: `${repository}/tree/main/${directory}#readme`,
    bugs: `${repository}/issues`,
    repository: { type: "git", url: `git+${repository}.git`, directory },
  };
}

module.exports = { addressesOf, addressesIn };
