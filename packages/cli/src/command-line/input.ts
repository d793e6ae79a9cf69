import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { UsageError } from "./errors.ts";

/** The bytes of a file, or of the standard input if the path is `-`. */
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

/** The text of a file, white space included. */
export async function readText(path: string): Promise<string> {
  return (await readBytes(path)).toString("utf8");
}
