/** A few short strings for the oracle: enough to notice most changes of the sources, and fast enough to be run after each of them. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { believes, findFault, findForgery, hostileTo, type Rules, SETTINGS } from "./oracle.ts";

/** The same strings in every run. */
const SEED = 20_251_121;
/** Of this many parts at most, since the number of bodies doubles with each part. */
const PARTS = 12;
const STRINGS = 12;

function shortStrings(rules: Rules): readonly string[] {
  const short = hostileTo(rules).filter((canonical) => canonical.split("&").length <= PARTS);
  return fc.sample(short, { numRuns: STRINGS, seed: SEED });
}

it("the judgement believes the values in which all bodies agree, no more and no less, whatever is set", () => {
  let run = 0;
  for (const [what, rules] of SETTINGS) {
    for (const canonical of shortStrings(rules)) {
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
