import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { UsageError } from "./errors.ts";

/** A file's bytes, or those of the standard input for `-`. */
export async function readBytes(path: string): Promise<Buffer> {
  if (path === "-") return buffer(process.stdin);
  try {
    return readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === "ENOENT" ? "does not exist" : code === "EISDIR" ? "is a folder" : `cannot be read (${code})`;
    throw new UsageError(`The file ${path} ${why}.`);
  }
}

/** A file's text; its white space is left as it is. */
export async function readText(path: string): Promise<string> {
  return (await readBytes(path)).toString("utf8");
}
