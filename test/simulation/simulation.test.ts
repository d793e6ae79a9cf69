/** Simulated histories, which `README.md` explains. `PAYHOOKS_SEED` chooses the first seed. */
import { describe, expect, it } from "vitest";
import { loadCore, withReplaced } from "./core.ts";
import { storyOf } from "./explore.ts";
import { play } from "./history.ts";
import { MUTANTS } from "./mutants.ts";
import { planOf } from "./plan.ts";
import { exploreInThreads } from "./threads.ts";

const HISTORIES = 500;
const seed = Number(process.env.PAYHOOKS_SEED ?? 1);
const MINUTES = 60_000;

describe("simulated histories", () => {
  it(`break no invariant: ${HISTORIES} from seed ${seed} on`, { timeout: 30 * MINUTES }, async () => {
    const { violations } = await exploreInThreads({ seed, histories: HISTORIES });
    const [first] = violations;
    if (first !== undefined) expect.fail(await storyOf(first, await loadCore()));
  });

  it("are the same each time", async () => {
    const core = await loadCore();
    const storyOfSeed = async (): Promise<readonly string[] | null> =>
      (await play(planOf(7), core, new Map(), true)).story;
    const story = await storyOfSeed();
    expect(story?.length).toBeGreaterThan(50);
    expect(await storyOfSeed()).toEqual(story);
  });
});

/** `mistakes.test.ts` plays them, which takes minutes. */
describe("each mistake that the invariants must find is aimed at a text that the core has once", () => {
  it.each(MUTANTS)("$name", async ({ changes }) => {
    for (const file of new Set(changes.map((change) => change.file))) {
      await expect(withReplaced(file, changes)).resolves.toBeTypeOf("string");
    }
  });
});
