// What `pnpm pack` writes into the manifest of each package besides what stands in it: where the project lives.
const { addressesOf } = require("./scripts/addresses.cjs");

module.exports = {
  hooks: {
    beforePacking: (manifest, directory) => ({ ...manifest, ...addressesOf(directory) }),
  },
};
