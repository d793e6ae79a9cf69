/** Mistakes in the core that the invariants must find: each one is played until they do. */
import { expect, it } from "vitest";
import { loadCore } from "./core.ts";
import { explore, storyOf } from "./explore.ts";
import { MUTANTS } from "./mutants.ts";
import { hunt } from "./mutation.ts";
import { IN_DOUBT } from "./plan.ts";

/** How many histories may pass until a mistake is found. Most are found in the first hundred. */
const HISTORIES = 5_000;

it.each(MUTANTS)("$name", { timeout: 30 * 60_000 }, async (mutant) => {
  expect(await hunt(mutant, 1, HISTORIES)).toMatchObject({ foundBy: expect.any(String) });
});

it("without a mistake, histories in doubt break no invariant either", async () => {
  const core = await loadCore();
  const { violations } = await explore({ core, seed: 1, histories: 500, size: IN_DOUBT });
  const [first] = violations;
  if (first !== undefined) expect.fail(await storyOf(first, core, IN_DOUBT));
});
