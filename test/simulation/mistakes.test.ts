/** Mistakes in the core that the invariants must find: each one is played until they do. */
import { expect, it } from "vitest";
import { EFFECT_MUTANTS } from "../effects/mutants.ts";
import { loadCore } from "./core.ts";
import { explore, storyOf } from "./explore.ts";
import { unknownNameFinder } from "./mistake-names.ts";
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

it("no mistake uses a name that the core does not have", async () => {
  const unknownNamesIn = unknownNameFinder();
  const unknown: string[] = [];
  for (const { name, changes } of MUTANTS)
    for (const message of await unknownNamesIn(changes)) unknown.push(`${name}: ${message}`);
  for (const { duty, ...change } of EFFECT_MUTANTS)
    for (const message of await unknownNamesIn([change])) unknown.push(`not ${duty}: ${message}`);
  expect(unknown).toEqual([]);
  const put = "return unknownName;";
  const find = "return Math.max(this.#clock.now()";
  expect(await unknownNamesIn([{ file: "time/clock.ts", find, put }])).toEqual([
    "Cannot find name 'unknownName'.",
  ]);
});
