/** The packages as they would be published, installed into projects outside of the workspace. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { root, type WorkspacePackage } from "./workspace.ts";

/** A program of the workspace's root, such as `pnpm` or `tsc`. */
export const bin = (tool: string): string => join(root, "node_modules", ".bin", tool);

/** Runs a command to its end, and answers with what it printed. Fails with all that it said. */
export async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { cwd, env: { ...process.env, NODE_ENV: "test" as const, ...env }, maxBuffer: 1 << 24 };
  try {
    const { stdout } = await promisify(execFile)(command, [...args], options);
    return stdout.trim();
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${stdout ?? ""}${stderr ?? ""}`, { cause: error });
  }
}

/** Writes a file below a folder, with the folders on its way; what is not text is written as JSON. */
export function write(folder: string, path: string, content: unknown): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content, null, 2));
}

/** Packs packages into a folder. Answers with what a manifest says to install each. */
export async function pack(
  packages: readonly WorkspacePackage[],
  folder: string,
): Promise<Readonly<Record<string, string>>> {
  const packed = packages.map(async ({ directory, manifest: { name } }) => {
    if (!existsSync(join(directory, "dist"))) throw new Error(`${name} is not built: npm run build`);
    const printed = await run(bin("pnpm"), ["pack", "--json", "--pack-destination", folder], directory);
    const { filename } = JSON.parse(printed) as { readonly filename: string };
    return [name, `file:${filename}`] as const;
  });
  return Object.fromEntries(await Promise.all(packed));
}

/** Installs the project in a folder, and those in its folders, with the packed packages. */
export async function install(folder: string, tarballs: Readonly<Record<string, string>>): Promise<void> {
  // Siblings are not on the registry: whoever asks for one gets its tarball. JSON is YAML.
  const settings = { overrides: tarballs, autoInstallPeers: false, strictPeerDependencies: true };
  write(folder, "pnpm-workspace.yaml", { packages: [".", "*"], ...settings });
  // pnpm's layout, unlike npm's, gives a package nothing that it did not declare.
  await run(bin("pnpm"), ["install", "--prefer-offline", "--ignore-scripts"], folder);
}
