// The closing line of .ci/run: the sum of the runs that left a report `<run>.json`, or a mark `<run>.failed`, in a folder.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [folder = ""] = process.argv.slice(2);
const names = readdirSync(folder);
let passed = 0;
let failed = 0;
for (const run of new Set(names.map((name) => name.replace(/\.(?:json|failed)$/, "")))) {
  const report = names.includes(`${run}.json`)
    ? JSON.parse(readFileSync(join(folder, `${run}.json`), "utf8"))
    : { numPassedTests: 0, numFailedTests: 0 };
  passed += report.numPassedTests;
  // A check, a file that cannot be loaded, an error outside of every test: no test failed, and the run did.
  failed += Math.max(report.numFailedTests, names.includes(`${run}.failed`) ? 1 : 0);
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
