import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A folder for this test file, with a space in its name as many have on Windows. */
export const folder: string = mkdtempSync(join(tmpdir(), "payhooks cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;

/** Writes a file and gives its path. */
export function file(content: string | Uint8Array, name = `file-${++files}`): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}
