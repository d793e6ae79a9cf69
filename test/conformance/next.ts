/** Next.js as an adapter under test: its production build, made anew only when something in it has changed. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../package/workspace.ts";

/** The command line of Next.js, to be run by Node. */
export const NEXT: string = join(root, "test/node_modules/next/dist/bin/next");
export const QUIET = { NEXT_TELEMETRY_DISABLED: "1", NODE_ENV: "production" } as const;

/** Builds the application in a folder, without any of its secrets. `inputs` are the files and folders that go into it. */
export async function buildNext(folder: string, inputs: readonly string[]): Promise<void> {
  const stamp = join(folder, ".next", "built-from");
  const wanted = fingerprint(inputs);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  const { PATH, HOME } = process.env;
  try {
    await promisify(execFile)(process.execPath, [NEXT, "build"], {
      cwd: folder,
      env: { PATH, HOME, ...QUIET },
    });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`next build failed in ${folder}:\n${stdout}${stderr}`, { cause: error });
  }
  writeFileSync(stamp, wanted);
}

/** A hash of files, and of all files in folders without what tools put there. */
function fingerprint(inputs: readonly string[]): string {
  const hash = createHash("sha256").update(readFileSync(NEXT));
  const skipped = new Set(["node_modules", ".next", "next-env.d.ts"]);
  const visit = (path: string): void => {
    if (statSync(path).isFile()) hash.update(path).update(readFileSync(path));
    else {
      for (const name of readdirSync(path).sort()) if (!skipped.has(name)) visit(join(path, name));
    }
  };
  for (const input of inputs) visit(join(root, input));
  return hash.digest("hex");
}
