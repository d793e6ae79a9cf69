// The closing lines of .ci/run, from a folder where each run left a report `<run>.json`, or a mark `<run>.failed`: the files that
// took longest, what failed, and the sum.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const [folder = ""] = process.argv.slice(2);
const names = readdirSync(folder);
let passed = 0;
let failed = 0;
/** How many of the slowest files of each run are named. */
const SLOWEST = 12;
for (const run of new Set(names.map((name) => name.replace(/\.(?:json|failed)$/, "")))) {
  const report = names.includes(`${run}.json`)
    ? JSON.parse(readFileSync(join(folder, `${run}.json`), "utf8"))
    : { numPassedTests: 0, numFailedTests: 0, testResults: [] };
  const files = report.testResults.filter(({ status }) => status === "failed");
  const slowest = report.testResults
    .map(({ name, startTime, endTime }) => ({ name, seconds: Math.round((endTime - startTime) / 1_000) }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST)
    .map(({ name, seconds }) => `${relative("", name)} ${seconds} s`);
  if (slowest.length > 0) process.stdout.write(`${run}, slowest: ${slowest.join(", ")}\n`);
  passed += report.numPassedTests;
  // A check, a file that cannot be loaded, an error outside of every test: no test failed, and the run did.
  failed += Math.max(report.numFailedTests, names.includes(`${run}.failed`) ? 1 : 0);
  if (names.includes(`${run}.failed`) && files.length === 0) say(run, "Its own output says why.");
  for (const file of files) {
    const path = relative("", file.name);
    const tests = file.assertionResults.filter(({ status }) => status === "failed");
    if (tests.length === 0) say(run, `${path}: ${file.message}`);
    for (const { fullName, failureMessages } of tests)
      say(run, `${path}, ${fullName}: ${failureMessages[0]}`);
  }
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);

function say(run, message) {
  process.stdout.write(`${run} failed. ${message.split("\n").slice(0, 5).join("\n  ")}\n`);
}
