// How `pnpm pack` changes the manifest of each package: it says where the project lives, and where the built entry points are.
const { addressesOf } = require("./scripts/addresses.cjs");
const { publishedEntryPoints } = require("./scripts/entry-points.cjs");

module.exports = {
  hooks: {
    beforePacking: (manifest, directory) => ({
      ...manifest,
      ...publishedEntryPoints(manifest),
      ...addressesOf(directory),
    }),
  },
};
