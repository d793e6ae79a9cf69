/** Other runtimes, installed on demand into a folder that git does not see. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

const manifest = join(root, "test/runtimes/package.json");
const { dependencies } = JSON.parse(readFileSync(manifest, "utf8")) as {
  readonly dependencies: Readonly<Record<string, string>>;
};
const hash = createHash("sha256").update(JSON.stringify(dependencies)).digest("hex").slice(0, 12);
const folder = join(root, "node_modules/.cache/payhooks-runtimes", hash);

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

/** Installs them unless they are there. No package's scripts are run: the programs are called by their paths. */
export async function installRuntimes(): Promise<void> {
  const done = join(folder, ".installed");
  if (existsSync(done)) return;
  mkdirSync(folder, { recursive: true });
  copyFileSync(manifest, join(folder, "package.json"));
  const args = ["install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund"];
  await promisify(execFile)("npm", args, { cwd: folder, maxBuffer: 16 * 1024 * 1024 });
  writeFileSync(done, "");
}

/** The version that a runtime says it has. */
export async function versionSaidBy({ command, name }: Runtime): Promise<string> {
  const { stdout } = await promisify(execFile)(command, ["--version"]);
  const [said = ""] = /\d+[.-]\d+[.-]\d+/.exec(stdout) ?? [];
  // workerd says the date that its own number is made of.
  return name === "workerd" ? `1.${said.replaceAll("-", "")}.1` : said;
}
