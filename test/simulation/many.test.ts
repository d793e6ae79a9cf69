/** As many histories as CI has time for, and whether each fault met each call. `PAYHOOKS_SEED` chooses the first seed. */
import { expect, it } from "vitest";
import { loadCore } from "./core.ts";
import { storyOf } from "./explore.ts";
import { leastCovered } from "./report.ts";
import { exploreInThreads } from "./threads.ts";

const HISTORIES = 5_000;
/** How often each fault must have met each call, at least. */
const MEETINGS = 10;
const seed = Number(process.env.PAYHOOKS_SEED ?? 100_001);

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
