import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { forAdapters, packageOf } from "../adapters.ts";
import { packagesIn, root } from "../package/workspace.ts";

/**
 * Everything that comes along when a merchant installs a package, with the reason for it. A new dependency is a
 * decision: it is written here first. Packages of the workspace itself are not listed.
 */
const REASONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "@payhooks/core": {
    "lru-cache":
      "bounds of the memory inbox, the key cache and the alert counters; no dependencies of its own",
  },
  ...forAdapters((adapter) => [packageOf(adapter), adapter.dependencies]),
  "@payhooks/client": {},
  "@payhooks/sandbox": {
    hono: "routes of the emulator; a tool for development, never part of a merchant's server",
    "@hono/node-server": "the emulator on Node's own HTTP server",
  },
  "@payhooks/console": {
    hono: "the page: safe HTML, responses, live events; no dependencies of its own",
    "@hono/node-server": "the page on Node's own requests, as Express and Fastify hand them over",
  },
  "@payhooks/pages": {
    esbuild: "bundles the scripts of the pages from the sources; not part of what is published",
  },
  payhooks: {},
};

/** The packages that a merchant has already, or installs for one inbox. */
const PEERS: Readonly<Record<string, readonly string[]>> = {
  "@payhooks/core": ["@opentelemetry/api", "ioredis", "libsql", "mysql2", "pg"],
  ...forAdapters((adapter) => [packageOf(adapter), adapter.peers]),
  "@payhooks/console": ["express", "fastify"],
  "@payhooks/pages": ["hono"],
  payhooks: ["ioredis", "libsql", "mysql2", "pg"],
};

const own = (name: string): boolean => name.startsWith("@payhooks/");
const foreign = (dependencies: Readonly<Record<string, string>> = {}): string[] =>
  Object.keys(dependencies)
    .filter((name) => !own(name))
    .sort();

describe.each(packagesIn("packages").map(({ manifest }) => [manifest.name, manifest] as const))(
  "%s",
  (name, { dependencies, peerDependencies, ...manifest }) => {
    it("has no runtime dependency without a reason, and no reason without a dependency", () => {
      expect(foreign(dependencies)).toEqual(
        Object.keys(REASONS[name] ?? { "not listed in this test": "" }).sort(),
      );
      for (const reason of Object.values(REASONS[name] ?? {})) expect(reason.length).toBeGreaterThan(20);
    });

    it("asks for peers that are listed here, and no others", () => {
      expect(foreign(peerDependencies)).toEqual(PEERS[name] ?? []);
    });

    it("runs nothing when it is installed", () => {
      const { scripts = {} } = manifest as { scripts?: Readonly<Record<string, string>> };
      const atInstall = ["preinstall", "install", "postinstall", "prepare"];
      expect(Object.keys(scripts).filter((script) => atInstall.includes(script))).toEqual([]);
    });
  },
);

describe("the lockfile and the workflows", () => {
  const read = (path: string): string => readFileSync(join(root, path), "utf8");

  it("take every package from the registry by its hash", () => {
    const packages = read("pnpm-lock.yaml").split("\npackages:\n")[1]?.split("\nsnapshots:\n")[0] ?? "";
    const resolutions = [...packages.matchAll(/^ {4}resolution: (.*)$/gm)].map(([, one = ""]) => one);
    expect(resolutions.length).toBeGreaterThan(100);
    expect(resolutions.filter((one) => !/^\{integrity: sha512-[A-Za-z0-9+/]{86}==\}$/.test(one))).toEqual([]);
  });

  it.each([".github/workflows/ci.yml", ".github/workflows/publish.yml"])(
    "%s uses no action but by its commit, and has no rights but those that it names",
    (path) => {
      const workflow = read(path);
      const uses = [...workflow.matchAll(/uses: (.*)$/gm)].map(([, one = ""]) => one);
      expect(uses.length).toBeGreaterThan(0);
      expect(uses.filter((one) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(one))).toEqual([]);
      expect(workflow).toMatch(/^permissions:\n {2}contents: read$/m);
      expect(workflow).not.toContain("pull_request_target");
    },
  );

  it("publishing is signed by the workflow that built it, and needs no token that could be stolen", () => {
    const workflow = read(".github/workflows/publish.yml");
    expect(workflow).toContain("id-token: write");
    expect(workflow).toContain("--provenance");
    expect(workflow).not.toMatch(/NPM_TOKEN|NODE_AUTH_TOKEN/);
  });
});
