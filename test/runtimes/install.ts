/** Other runtimes, and SQLite drivers that need a compiler, installed on demand into a folder that git does not see. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../package/workspace.ts";

/** A program that runs JavaScript, and what it must say that it is. */
export interface Runtime {
  readonly name: string;
  /** Absolute. */
  readonly command: string;
  /** Before the program's path. */
  readonly args: readonly string[];
  readonly version: string;
}

/** A manifest's dependencies, installed into a folder of its own. */
export interface Installation {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly folder: string;
  /** Installs it unless it is there. Rejects with what npm said. */
  install(...options: readonly string[]): Promise<void>;
}

/** The installation of a manifest into a folder below another one, named after what the manifest asks for. */
export function installationOf(manifest: string, parent: string): Installation {
  const { dependencies } = JSON.parse(readFileSync(manifest, "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const hash = createHash("sha256").update(JSON.stringify(dependencies)).digest("hex").slice(0, 12);
  const folder = join(parent, hash);
  return {
    dependencies,
    folder,
    async install(...options) {
      const done = join(folder, ".installed");
      if (existsSync(done)) return;
      mkdirSync(folder, { recursive: true });
      copyFileSync(manifest, join(folder, "package.json"));
      const args = ["install", "--no-package-lock", "--no-audit", "--no-fund", ...options];
      await promisify(execFile)("npm", args, { cwd: folder, maxBuffer: 16 * 1024 * 1024 });
      writeFileSync(done, "");
    },
  };
}

/** Installs what this machine may be unable to compile. Answers null, or in words why it is not there. */
export async function whyNotInstalled(installation: Installation): Promise<string | null> {
  try {
    await installation.install();
    return null;
  } catch (error) {
    const { stderr, message } = error as { readonly stderr?: string; readonly message: string };
    const said = (stderr ?? message).trimEnd().split("\n").slice(-LINES_SHOWN).join("\n");
    return `${Object.keys(installation.dependencies).join(", ")} is not installed: it could not be compiled. That takes a C++ compiler, Python, and the headers of Node.js, which npm fetches unless npm_config_nodedir says where they are. npm said:\n${said}`;
  }
}

const LINES_SHOWN = 25;

const here = join(root, "test/runtimes");
const cache = join(root, "node_modules/.cache/payhooks-runtimes");
const runtimes = installationOf(join(here, "package.json"), cache);
const drivers = installationOf(join(here, "drivers/package.json"), cache);
const { dependencies, folder } = runtimes;

const versionOf = (name: string): string => (dependencies[name] ?? "").replace(/^.*@/, "");
const inside = (path: string): string => join(folder, "node_modules", path);

export const NODES: readonly Runtime[] = ["node-20", "node-22", "node-24", "node-26"].map((name) => ({
  name,
  command: inside(`${name}/bin/node`),
  args: [],
  version: versionOf(name),
}));
export const BUN: Runtime = {
  name: "bun",
  command: inside("@oven/bun-linux-x64/bin/bun"),
  args: ["run"],
  version: versionOf("@oven/bun-linux-x64"),
};
export const DENO: Runtime = {
  name: "deno",
  command: inside("@deno/linux-x64-glibc/deno"),
  args: ["run", "--allow-all", "--no-check", "--quiet", "--node-modules-dir=manual"],
  version: versionOf("deno"),
};
export const WORKERD: Runtime = {
  name: "workerd",
  command: inside("@cloudflare/workerd-linux-64/bin/workerd"),
  args: [],
  version: versionOf("workerd"),
};

/** Loads a SQLite driver that is no dependency of the workspace. */
export const requireDriver: NodeJS.Require = createRequire(join(drivers.folder, "package.json"));

/**
 * Installs them unless they are there. No runtime's scripts are run: the programs are called by their paths. A driver
 * is compiled by its own, where there is no compiled one for the platform; where that fails, the answer says why, and
 * whoever tests with it fails, not the others.
 */
export async function installRuntimes(): Promise<{ readonly whyNoDrivers: string | null }> {
  await runtimes.install("--ignore-scripts");
  return { whyNoDrivers: await whyNotInstalled(drivers) };
}

/** The version that a runtime says it has. */
export async function versionSaidBy({ command, name }: Runtime): Promise<string> {
  const { stdout } = await promisify(execFile)(command, ["--version"]);
  const [said = ""] = /\d+[.-]\d+[.-]\d+/.exec(stdout) ?? [];
  // workerd says the date that its own number is made of.
  return name === "workerd" ? `1.${said.replaceAll("-", "")}.1` : said;
}
