import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder for this test file, with a space in its name as many have on Windows. */
export let folder: string;

/** Makes the folder of the test file that begins now. Returns the function that removes it. */
export function makeFolder(): () => void {
  const made = mkdtempSync(join(tmpdir(), "payhooks cli-"));
  folder = made;
  return () => rmSync(made, { recursive: true, force: true });
}

let files = 0;

/** Writes a file and gives its path. */
export function file(content: string | Uint8Array, name = `file-${++files}`): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}
