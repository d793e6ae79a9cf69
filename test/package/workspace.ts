import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root: string = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

/** The part of a package.json that the package tests look at. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** One folder of the workspace that has a manifest. */
export interface WorkspacePackage {
  /** Absolute. */
  readonly directory: string;
  readonly manifest: Manifest;
}

export function readManifest(directory: string): Manifest {
  const manifest: Manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  return manifest;
}

/** The packages in a folder of the workspace, such as `packages` or `examples`. */
export function packagesIn(folder: string): WorkspacePackage[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .map((entry) => join(root, folder, entry.name))
    .filter((directory) => existsSync(join(directory, "package.json")))
    .map((directory) => ({ directory, manifest: readManifest(directory) }));
}

/** Absolute paths of the TypeScript sources under `src`. */
export function sourcesOf({ directory }: WorkspacePackage): string[] {
  const source = join(directory, "src");
  if (!existsSync(source)) return [];
  return readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.[cm]?tsx?$/.test(path))
    .map((path) => join(source, path));
}

/** A path as it is shown in a failure: from the workspace root, with forward slashes. */
export function shown(path: string): string {
  return relative(root, path).replaceAll("\\", "/");
}
