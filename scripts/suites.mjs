// Finds the suites that need a server: those that import the file that starts it, by themselves or through another file.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
/** Matches run-time imports, not imports of types. */
const IMPORT = /^(?:import|export) (?!type\b)[^;]*?from "(\.[^"]+)"|import\("(\.[^"]+)"\)/gm;

function sourcesIn(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return /^(?:node_modules|\.)/.test(entry.name) ? [] : sourcesIn(path);
    return path.endsWith(".ts") ? [path] : [];
  });
}

/** Maps each file that is imported somewhere in the tests to the files that import it. */
const importers = new Map();
for (const path of sourcesIn("test")) {
  for (const [, named, loaded] of readFileSync(join(root, path), "utf8").matchAll(IMPORT)) {
    const imported = posix.join(posix.dirname(path), named ?? loaded);
    importers.set(imported, [...(importers.get(imported) ?? []), path]);
  }
}

/** Says which suites are left out, since a program is missing. With `CI` set that is a failure, since nobody would read the line. */
export function leaveOut(suites, program, install) {
  const line = `${program} is missing: ${suites.join(", ")} are left out. Install it: ${install}`;
  process.stderr.write(`\u001b[31m${line}\u001b[0m\n`);
  if (process.env.CI) process.exit(1);
}

/** The suites that cannot run without what this file of the tests starts. */
export function suitesThatUse(path) {
  const users = new Set([path]);
  for (const one of users) for (const user of importers.get(one) ?? []) users.add(user);
  return [...users].filter((user) => user.endsWith(".test.ts")).sort();
}
