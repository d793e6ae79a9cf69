/**
 * As many histories as CI has time for, whether each fault met each call, and mistakes that are rarely found. `PAYHOOKS_SEED` chooses
 * the first history.
 */
import { constants, setPriority } from "node:os";
import { expect, it } from "vitest";
import { loadCore } from "./core.ts";
import { exploreInThreads } from "./crew.ts";
import { storyOf } from "./explore.ts";
import { MUTANTS } from "./mutants.ts";
import { hunt } from "./mutation.ts";
import { leastCovered } from "./report.ts";

const HISTORIES = 25_000;
/** How often each fault must have met each call, at least. */
const MEETINGS = 100;
/** How many histories may pass until a rare mistake is found. */
const RARE_HISTORIES = 30_000;
const seed = Number(process.env.PAYHOOKS_SEED ?? 100_001);

// Tests that measure on a real clock run beside this, and go first.
setPriority(constants.priority.PRIORITY_LOW);

it(`${HISTORIES} histories from seed ${seed} on break no invariant, and each fault meets each call`, {
  timeout: 30 * 60_000,
}, async () => {
  const { violations, coverage, histories, tookMs } = await exploreInThreads({ seed, histories: HISTORIES });
  const [first] = violations;
  if (first !== undefined) expect.fail(await storyOf(first, await loadCore()));
  const { name, count } = leastCovered(coverage);
  console.log(
    `${histories} histories, ${((histories / tookMs) * 1_000).toFixed(0)} a second; the rarest is ${name}: ${count} times`,
  );
  expect(count, `${name} in ${histories} histories`).toBeGreaterThanOrEqual(MEETINGS);
});

it.each(MUTANTS.filter(({ isRare }) => isRare === true))(
  "finds: $name",
  {
    timeout: 30 * 60_000,
  },
  async (mutant) => {
    expect(await hunt(mutant, 1, RARE_HISTORIES)).toMatchObject({ foundBy: expect.any(String) });
  },
);
