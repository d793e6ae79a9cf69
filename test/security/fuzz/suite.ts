import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seedOfRun } from "../random.ts";
import { lengthOf, report, TIMEOUT_MS } from "../report.ts";
import { Fuzzer } from "./fuzzer.ts";
import { REGRESSIONS } from "./regressions.ts";
import { ADAPTERS, startTarget } from "./targets.ts";

const seed = seedOfRun();
const fuzzer = new Fuzzer(seed);
export const ON_NODE_REQUESTS: readonly string[] = ["Express 5", "Express 4", "Fastify"];
export const ON_WEB_REQUESTS: readonly string[] = Object.keys(ADAPTERS).filter(
  (name) => !ON_NODE_REQUESTS.includes(name),
);

/** Of 51,000 and 1,002,000 in all. */
const PER_ADAPTER = lengthOf(8_500, 167_000);
/** A new receiver now and then: what is known already is not run again. */
const CHUNK = 2_500;

/** Fuzzes some of the adapters; they are spread over files, so that more than one processor does it. */
export function fuzzAdapters(names: readonly string[]): void {
  const adapters = Object.entries(ADAPTERS).filter(([name]) => names.includes(name));

  describe(`signed deliveries, changed in any way, seed ${seed}`, { timeout: TIMEOUT_MS }, () => {
    const uncaught: unknown[] = [];
    const note = (error: unknown): void => void uncaught.push(error);
    beforeAll(() => void process.on("uncaughtExceptionMonitor", note).on("unhandledRejection", note));
    afterAll(() => void process.off("uncaughtExceptionMonitor", note).off("unhandledRejection", note));

    it.each(adapters)("forge nothing and break nothing behind %s", async (name, start) => {
      const answers = new Map<string, number>();
      const forged: string[] = [];
      const broken: string[] = [];
      let tried = 0;
      while (tried < PER_ADAPTER) {
        const target = await startTarget(start);
        try {
          const tally = await fuzzer.run(target, tried, Math.min(CHUNK, PER_ADAPTER - tried));
          tried += tally.tried;
          forged.push(...tally.forged);
          broken.push(...tally.broken);
          for (const [answer, count] of tally.answers)
            answers.set(answer, (answers.get(answer) ?? 0) + count);
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

    it.each(adapters)("that once were answered wrongly are not, behind %s", async (_, start) => {
      for (const { seed: kept, number, why } of REGRESSIONS) {
        const target = await startTarget(start);
        try {
          const { forged, broken } = await new Fuzzer(kept).run(target, number, 1);
          expect({ why, forged, broken }).toEqual({ why, forged: [], broken: [] });
        } finally {
          await target.close();
        }
      }
    });
  });
}
