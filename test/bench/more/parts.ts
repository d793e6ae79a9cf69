/** The cost of a delivery in a loop, by part: a program of its own. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { PartFigures } from "../results.ts";

/** @param program as it was built, to be run on the Node at `execPath`. */
export async function measureParts(program: string, execPath: string): Promise<readonly PartFigures[]> {
  const env = { ...process.env, NODE_ENV: "production" };
  const { stdout } = await promisify(execFile)(execPath, ["--expose-gc", program], { env });
  return JSON.parse(stdout) as readonly PartFigures[];
}
