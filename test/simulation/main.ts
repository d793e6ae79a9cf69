/**
 * `npm run test:simulation -- --histories 20000 --seed 1`: plays histories, and prints which invariants they broke, and how
 * often each fault met each call. `--mutants 2000` hunts each mistake through this many histories; `--docs` writes the results
 * to results.md.
 */
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { loadCore } from "./core.ts";
import { storyOf } from "./explore.ts";
import { INVARIANTS } from "./invariants.ts";
import { MUTANTS } from "./mutants.ts";
import { type Hunt, hunt } from "./mutation.ts";
import { coverageTable, invariantTable, leastCovered, mutantTable } from "./report.ts";
import { exploreInThreads } from "./threads.ts";

const { values } = parseArgs({
  options: {
    histories: { type: "string", default: "20000" },
    seed: { type: "string", default: "1" },
    /** Continues until this many histories have broken an invariant. */
    enough: { type: "string", default: "1" },
    mutants: { type: "string", default: "0" },
    docs: { type: "boolean", default: false },
  },
});
const seed = Number(values.seed);
const cpuBefore = process.cpuUsage();
const { histories, violations, tookMs, calls, writes, coverage } = await exploreInThreads({
  seed,
  histories: Number(values.histories),
  enough: Number(values.enough),
  onProgress: (played) => played % 1_000 === 0 && console.log(`${played} histories`),
  onViolation: ({ seed: one, invariant, how }) => console.log(`${one} ${invariant}: ${how}`),
});
const cpu = process.cpuUsage(cpuBefore);
const perHistory = (count: number): string => (count / histories).toFixed(1);
const played = `${histories} histories from seed ${seed} on: ${violations.length} violations`;
console.log(
  `${played}, ${((histories / tookMs) * 1_000).toFixed(0)} a second, ${((cpu.user + cpu.system) / 1_000 / histories).toFixed(1)} ms of processor time each; ${perHistory(calls)} calls of handlers and ${perHistory(writes)} writes each`,
);
const [first] = violations;
if (first !== undefined) {
  console.log(await storyOf(first, await loadCore()));
  process.exitCode = 1;
}
const least = leastCovered(coverage);
if (histories > 1) {
  console.log(coverageTable(coverage));
  console.log(`least: ${least.name}, ${least.count} times`);
}

const hunts: Hunt[] = [];
const longest = Number(values.mutants);
if (longest > 0) {
  for (const mutant of MUTANTS) {
    const found = await hunt(mutant, seed, longest);
    hunts.push(found);
    console.log(`${found.foundBy ?? "NOT FOUND"} after ${found.histories}: ${found.mutant}`);
    if (found.foundBy === null) process.exitCode = 1;
  }
}

if (values.docs) {
  const page = new URL("results.md", import.meta.url);
  let text = await readFile(page, "utf8");
  const put = (name: string, content: string): void => {
    const [begin, end] = [`<!-- ${name}: written by npm run test:simulation -->`, `<!-- end of ${name} -->`];
    const [before, rest] = text.split(begin);
    const after = rest?.split(end)[1];
    if (before === undefined || after === undefined)
      throw new Error(`test/simulation/results.md has no place for ${name}`);
    text = `${before}${begin}\n\n${content}\n\n${end}${after}`;
  };
  put("invariants", invariantTable(INVARIANTS));
  put("coverage", `${played}. The least: ${least.name}, ${least.count} times.\n\n${coverageTable(coverage)}`);
  if (hunts.length > 0) put("mutants", mutantTable(hunts));
  await writeFile(page, text);
}
