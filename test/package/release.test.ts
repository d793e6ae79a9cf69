import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { addressesIn } from "../../scripts/addresses.cjs";
import { nextVersion, withSection } from "../../scripts/next-version.mjs";
import { type ReleaseState, releaseProblems } from "../../scripts/release-problems.mjs";
import { packagesIn, root } from "./workspace.ts";

const published = packagesIn("packages").filter(({ manifest }) => manifest.private !== true);
const manifestText = ({ directory }: { directory: string }): string =>
  readFileSync(join(directory, "package.json"), "utf8");

describe("the manifests of the packages", () => {
  it("have one version", () => {
    expect(new Set(published.map(({ manifest }) => manifest.version)).size).toBe(1);
  });

  it.each(published.map((one) => [one.manifest.name, one] as const))(
    "say what it is, how to find it and on what it runs: %s",
    (_name, one) => {
      const manifest: {
        readonly description?: string;
        readonly keywords?: readonly string[];
        readonly engines?: { readonly node?: string };
        readonly publishConfig?: { readonly access?: string };
      } = JSON.parse(manifestText(one));
      expect(manifest.description).toMatch(/^[A-Z].{20,}\.$/);
      expect(manifest.keywords?.length).toBeGreaterThan(3);
      expect(manifest.keywords).toContain("webhooks");
      // Node 20 stays supported until 1.0.
      expect(manifest.engines?.node).toBe(">=20.9");
      expect(manifest.publishConfig?.access).toBe("public");
      // The root says where the project lives, and packing writes it into each.
      expect(manifestText(one)).not.toMatch(/"(?:repository|homepage|bugs)":/);
    },
  );

  it("get the addresses of the project when they are packed", () => {
    expect(addressesIn("https://github.com/example/payhooks", "packages/core")).toEqual({
      homepage: "https://github.com/example/payhooks/tree/main/packages/core#readme",
      bugs: "https://github.com/example/payhooks/issues",
      repository: {
        type: "git",
        url: "git+https://github.com/example/payhooks.git",
        directory: "packages/core",
      },
    });
  });

  it("have a report of what they export, each entry point", () => {
    for (const { directory, manifest } of published) {
      const wanted = Object.keys(manifest.exports ?? {})
        .filter((subpath) => subpath !== "./package.json")
        .map((subpath) => (subpath === "." ? "index" : subpath.slice(2).replaceAll("/", "-")))
        .map((name) => `${name}.api.md`);
      const there = wanted.length === 0 ? [] : readdirSync(join(directory, "api"));
      expect(there.toSorted()).toEqual(wanted.toSorted());
    }
  });
});

describe("a release", () => {
  const ready: ReleaseState = {
    repository: "https://github.com/example/payhooks",
    versions: ["0.2.0", "0.2.0"],
    changelog: "# Changelog\n\n## 0.2.0\n\n## 0.1.0\n",
    changesets: [],
    tag: "v0.2.0",
    building: "example/payhooks",
  };

  it("goes out when all is well", () => {
    expect(releaseProblems(ready)).toEqual([]);
    expect(releaseProblems({ ...ready, tag: null, building: null })).toEqual([]);
  });

  it.each<[string, Partial<ReleaseState>, string]>([
    ["nobody knows where the project lives", { repository: "" }, "Set `repository` in the package.json"],
    ["that is not an address", { repository: "example/payhooks" }, 'must look like "https://github.com'],
    ["it has .git at its end", { repository: "https://github.com/example/payhooks.git" }, 'without ".git"'],
    ["another repository builds it", { building: "fork/payhooks" }, "npm would refuse the proof"],
    [
      "the packages have several versions",
      { versions: ["0.2.0", "0.1.0"] },
      "0.2.0, 0.1.0. They are released together. Write the latest of these into all package.json files",
    ],
    [
      "changes wait for a version",
      { changesets: ["kind-cat.md"] },
      "Changes wait for a version: kind-cat.md",
    ],
    ["the changelog does not have the version", { changelog: "# Changelog\n" }, 'no section "## 0.2.0"'],
    ["the tag is another", { tag: "v0.3.0" }, "Tag v0.2.0"],
  ])("stops with one clear message when %s", (_case, change, message) => {
    const problems = releaseProblems({ ...ready, ...change });
    expect(problems).toEqual([expect.stringContaining(message)]);
  });

  it("is described by a changelog that has the version of the packages", () => {
    const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
    expect(changelog).toContain(`\n## ${published[0]?.manifest.version}\n`);
  });

  it("has one version for all packages, those of a new one too", () => {
    const config: { readonly fixed: readonly string[][] } = JSON.parse(
      readFileSync(join(root, ".changeset/config.json"), "utf8"),
    );
    expect(config.fixed).toEqual([["payhooks", "@payhooks/*"]]);
    expect(published.map(({ manifest }) => manifest.name)).toSatisfy((names: readonly string[]) =>
      names.every((name) => name === "payhooks" || name.startsWith("@payhooks/")),
    );
  });
});

describe("npm run release:check", () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-release-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const check = (): { readonly status: number | null; readonly said: string } => {
    const { GITHUB_REPOSITORY: _, GITHUB_REF_TYPE: __, GITHUB_REF_NAME: ___, ...env } = process.env;
    const args = [join(root, "scripts/check-release.mjs")];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: folder,
      env,
      encoding: "utf8",
    });
    return { status, said: stdout + stderr };
  };

  it("passes with the packages of this workspace once it is known where they live, and nothing waits", () => {
    const manifest = readFileSync(join(root, "package.json"), "utf8");
    const repository = "https://github.com/example/payhooks";
    writeFileSync(join(folder, "package.json"), JSON.stringify({ ...JSON.parse(manifest), repository }));
    for (const { directory } of packagesIn("packages"))
      cpSync(join(directory, "package.json"), join(folder, "packages", basename(directory), "package.json"));
    cpSync(join(root, "CHANGELOG.md"), join(folder, "CHANGELOG.md"));
    mkdirSync(join(folder, ".changeset"));
    expect(check()).toEqual({ status: 0, said: "Ready to be released.\n" });
    writeFileSync(join(folder, ".changeset/kind-cat.md"), "");
    expect(check()).toEqual({ status: 1, said: expect.stringContaining("Changes wait for a version") });
  });
});

describe("npm run release:prepare", () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-release-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const read = (path: string): string => readFileSync(join(folder, path), "utf8");
  const run = (command: string, ...args: readonly string[]): string => {
    const PATH = [join(root, "node_modules/.bin"), process.env.PATH].join(delimiter);
    return execFileSync(command, args, { cwd: folder, env: { ...process.env, PATH }, encoding: "utf8" });
  };

  it("gives all packages one version, even if they had several", () => {
    const manifest = (name: string, version: string): string =>
      `{ "name": "${name}", "version": "${version}", "engines": {} }\n`;
    write("package.json", '{ "name": "workspace", "private": true, "workspaces": ["packages/*"] }');
    write("packages/cli/package.json", manifest("payhooks", "0.2.0"));
    write("packages/core/package.json", manifest("@payhooks/core", "0.10.0"));
    write(
      "packages/pages/package.json",
      '{ "name": "@payhooks/pages", "version": "0.0.0", "private": true }',
    );
    write("CHANGELOG.md", "# Changelog\n\n## 0.10.0\n");
    write(".changeset/config.json", readFileSync(join(root, ".changeset/config.json"), "utf8"));
    write(".changeset/kind-cat.md", '---\n"@payhooks/core": patch\n---\n\nA change.\n');
    run("git", "init", "--quiet", "--initial-branch=main");
    run("git", "add", ".");
    run("git", "-c", "user.name=t", "-c", "user.email=t@t.example", "commit", "--quiet", "-m", "all");
    expect(run(process.execPath, join(root, "scripts/prepare-release.mjs"))).toContain("0.10.0 → 0.10.1.");
    expect(read("packages/cli/package.json")).toBe(manifest("payhooks", "0.10.1"));
    expect(read("packages/core/package.json")).toBe(manifest("@payhooks/core", "0.10.1"));
    expect(read("packages/pages/package.json")).toContain('"0.0.0"');
    expect(read("CHANGELOG.md")).toContain("## 0.10.1\n\n### Fixed\n\n- A change.\n\n## 0.10.0");
    expect(existsSync(join(folder, ".changeset/kind-cat.md"))).toBe(false);
  });
});

describe("the next version", () => {
  it.each([
    ["0.1.0", ["patch"], "0.1.1"],
    ["0.1.1", ["patch", "minor"], "0.2.0"],
    ["0.9.3", ["major"], "0.10.0"],
    ["1.2.3", ["major", "patch"], "2.0.0"],
    ["1.2.3", ["minor"], "1.3.0"],
  ] as const)("after %s with %s is %s", (current, kinds, next) => {
    expect(nextVersion(current, kinds)).toBe(next);
  });

  it("stands above the others in the changelog, the heaviest change first", () => {
    const changes = [
      { kind: "patch", text: "An answer is no longer late." },
      { kind: "major", text: "`old` is gone." },
    ] as const;
    expect(withSection("# Changelog\n\nIntro.\n\n## 0.1.0\n\nFirst.\n", "0.2.0", changes)).toBe(
      "# Changelog\n\nIntro.\n\n## 0.2.0\n\n### Breaking changes\n\n- `old` is gone.\n\n### Fixed\n\n- An answer is no longer late.\n\n## 0.1.0\n\nFirst.\n",
    );
  });
});
