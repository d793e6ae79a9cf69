import { rmSync } from "node:fs";

/**
 * Removes a folder of a test's own. Windows removes no file that is open, and libsql keeps its file open after its
 * handle is closed: there the folder stays.
 */
export function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    if (process.platform !== "win32") throw error;
  }
}
