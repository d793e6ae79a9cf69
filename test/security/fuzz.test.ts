import { describe, expect, it } from "vitest";
import { Fuzzer } from "./fuzz/fuzzer.ts";
import { fuzzAdapters, ON_NODE_REQUESTS } from "./fuzz/suite.ts";
import { startNaive } from "./fuzz/targets.ts";
import { seedOfRun } from "./random.ts";
import { report, TIMEOUT_MS } from "./report.ts";

fuzzAdapters(ON_NODE_REQUESTS);

const seed = seedOfRun();

describe(`the attempts of seed ${seed}`, { timeout: TIMEOUT_MS }, () => {
  const fuzzer = new Fuzzer(seed);

  it("are the same for the same seed", () => {
    const again = new Fuzzer(seed);
    for (let number = 0; number < 200; number++) {
      expect(again.attempt(number).bytes.equals(fuzzer.attempt(number).bytes)).toBe(true);
    }
    const bytes = new Set(
      Array.from({ length: 200 }, (_, number) => again.attempt(number).bytes.toString("hex")),
    );
    expect(bytes.size).toBeGreaterThan(190);
  });

  it("catch a receiver that is written by hand: forged events, and invalid answers", async () => {
    const target = await startNaive();
    try {
      const { forged, broken } = await fuzzer.run(target, 0, 1_500);
      const killed = [forged, broken].filter((found) => found.length > 0).length;
      report({
        proof: "fuzz: a naive receiver",
        cases: 1_500,
        mutants: { killed, of: 2 },
        note: `${forged.length} forged, ${broken.length} broken, as expected`,
      });
      expect(forged.length).toBeGreaterThan(0);
      expect(broken.length).toBeGreaterThan(0);
    } finally {
      await target.close();
    }
  });
});
