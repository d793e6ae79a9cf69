/** Packages that only the bench needs, installed on demand into folders that git does not see, in exact versions. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { root } from "../package/workspace.ts";

type Versions = Readonly<Record<string, string>>;

const dependenciesIn = (path: string): Versions =>
  (
    JSON.parse(readFileSync(fileURLToPath(new URL(path, import.meta.url)), "utf8")) as {
      readonly dependencies: Versions;
    }
  ).dependencies;

/** Names and versions, as the report gives them. */
export const PEER_VERSIONS: Versions = dependenciesIn("peers/package.json");

/** The module that exports the peers. */
export async function installPeers(): Promise<string> {
  const folder = await installed("peers", PEER_VERSIONS);
  const module = join(folder, "peers.mjs");
  copyFileSync(fileURLToPath(new URL("peers/peers.mjs", import.meta.url)), module);
  return module;
}

/** Node's program in the version of the runtimes' tests. */
export async function installNode(major: string): Promise<string> {
  const name = `node-${major}`;
  const version = dependenciesIn("../runtimes/package.json")[name];
  if (version === undefined) throw new Error(`test/runtimes/package.json has no ${name}`);
  return join(await installed(name, { [name]: version }), "node_modules", name, "bin/node");
}

/** The folder in which these are. No package's scripts are run. */
async function installed(name: string, dependencies: Versions): Promise<string> {
  const text = JSON.stringify({ private: true, type: "module", dependencies });
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 12);
  const folder = join(root, "node_modules/.cache/payhooks-bench", `${name}-${hash}`);
  const done = join(folder, ".installed");
  if (existsSync(done)) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), text);
  const args = ["install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund"];
  await promisify(execFile)("npm", args, { cwd: folder, maxBuffer: 16 * 1024 * 1024 });
  writeFileSync(done, "");
  return folder;
}
