import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fuzzer, type Tally } from "./fuzz/fuzzer.ts";
import { REGRESSIONS } from "./fuzz/regressions.ts";
import { ADAPTERS, startNaive, startTarget } from "./fuzz/targets.ts";
import { seedOfRun } from "./random.ts";
import { lengthOf, report, TIMEOUT_MS } from "./report.ts";

const seed = seedOfRun();
const fuzzer = new Fuzzer(seed);
const perAdapter = lengthOf(12_500, 1_000_000) / Object.keys(ADAPTERS).length;
/** A new receiver now and then: what is known already is not run again. */
const CHUNK = 2_500;

describe(`signed deliveries, changed in any way, seed ${seed}`, { timeout: TIMEOUT_MS }, () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  beforeAll(() => void process.on("uncaughtExceptionMonitor", note).on("unhandledRejection", note));
  afterAll(() => void process.off("uncaughtExceptionMonitor", note).off("unhandledRejection", note));

  it.each(Object.entries(ADAPTERS))("forge nothing and break nothing behind %s", async (name, start) => {
    const answers = new Map<string, number>();
    const forged: string[] = [];
    const broken: string[] = [];
    let tried = 0;
    while (tried < perAdapter) {
      const target = await startTarget(start);
      try {
        const tally: Tally = await fuzzer.run(target, tried, Math.min(CHUNK, perAdapter - tried));
        tried += tally.tried;
        forged.push(...tally.forged);
        broken.push(...tally.broken);
        for (const [answer, count] of tally.answers) answers.set(answer, (answers.get(answer) ?? 0) + count);
      } finally {
        await target.close();
      }
    }
    report({
      proof: `fuzz: ${name}`,
      cases: tried,
      forged: forged.length,
      crashes: broken.length + uncaught.length,
      note: `${answers.get('200 {"received":true}') ?? 0} acknowledged, ${answers.size} answers, seed ${seed}`,
    });
    expect(forged).toEqual([]);
    expect(broken).toEqual([]);
    expect(uncaught).toEqual([]);
    // It is worth something only if all kinds of answers are given.
    expect(answers.size).toBeGreaterThan(8);
    expect(answers.get('200 {"received":true}')).toBeGreaterThan(tried / 10);
  });

  it.each(Object.entries(ADAPTERS))(
    "that once were answered wrongly are not, behind %s",
    async (_, start) => {
      for (const { seed: kept, number, why } of REGRESSIONS) {
        const target = await startTarget(start);
        try {
          const { forged, broken } = await new Fuzzer(kept).run(target, number, 1);
          expect({ why, forged, broken }).toEqual({ why, forged: [], broken: [] });
        } finally {
          await target.close();
        }
      }
    },
  );

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

  it("find out a receiver as anyone would write it: forged events, and answers that are none", async () => {
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
