/** What a delivery costs in a loop, by part: a program of its own. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { PartFigures } from "../results.ts";

const program = fileURLToPath(new URL("../child/parts.mjs", import.meta.url));

export async function measureParts(execPath: string): Promise<readonly PartFigures[]> {
  const env = { ...process.env, NODE_ENV: "production" };
  const { stdout } = await promisify(execFile)(execPath, ["--expose-gc", program], { env });
  return JSON.parse(stdout) as readonly PartFigures[];
}
