/** A few strings for the oracle: enough to notice most changes of the sources, and fast enough to be run after each of them. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { believes, findFault, findForgery, hostileTo, SETTINGS } from "./oracle.ts";

/** The same strings in every run. */
const SEED = 20_251_121;
const STRINGS = 3;

it("what is believed is what all bodies say, no more and no less, whatever is set", () => {
  let run = 0;
  for (const [what, rules] of SETTINGS) {
    for (const canonical of fc.sample(fc.noBias(hostileTo(rules)), { numRuns: STRINGS, seed: SEED })) {
      const fault = findFault(canonical, rules, (...given) => {
        const answer = believes(...given);
        if (typeof answer !== "string") run++;
        return answer;
      });
      expect(fault, what).toBeNull();
      expect(findForgery(canonical, rules, believes), what).toBeNull();
    }
  }
  expect(run).toBeGreaterThan(20);
});
