/** Runs the tests of effects on sources with one mistake: `PAYHOOKS_MUTANT` is its number. */
import { defineConfig, type ViteUserConfig } from "vitest/config";
import { EFFECT_MUTANTS } from "./mutants.ts";

const mutant = EFFECT_MUTANTS[Number(process.env.PAYHOOKS_MUTANT)];
const conditions = ["payhooks-source", "module", "node", "development|production"];

const config: ViteUserConfig = defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  plugins: [
    {
      name: "one mistake",
      enforce: "pre",
      transform(code, id) {
        if (mutant === undefined || !id.endsWith(`packages/core/src/${mutant.file}`)) return undefined;
        const { find, put, file } = mutant;
        const times = code.split(find).length - 1;
        if (times !== 1) throw new Error(`${file} has ${times} times, not once: ${find}`);
        return code.replace(find, () => put);
      },
    },
  ],
  test: {
    include: ["packages/core/test/effects/*.test.ts"],
    // A mistake may make a test wait for what never comes.
    testTimeout: 20_000,
    isolate: false,
    maxWorkers: 1,
  },
});

export default config;
