/** The cost of importing an entry point and of starting a receiver: programs of their own, in turns. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { entrySizes } from "../../../scripts/entry-sizes.mjs";
import type { EntryFigures, StartFigures } from "../results.ts";
import { median } from "../statistics.ts";

const ROUNDS = 11;
const cwd = fileURLToPath(new URL("../..", import.meta.url));

async function run(execPath: string, program: string): Promise<number> {
  const env = { ...process.env, NODE_ENV: "production" };
  const { stdout } = await promisify(execFile)(execPath, ["--input-type=module", "-e", program], {
    cwd,
    env,
  });
  return Number(stdout);
}

async function inTurns(execPath: string, programs: readonly string[]): Promise<readonly number[]> {
  const times: number[][] = programs.map(() => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, program] of programs.entries()) times[index]?.push(await run(execPath, program));
  }
  return times.map(median);
}

const importing = (entry: string): string =>
  `const from = performance.now(); await import(${JSON.stringify(entry)}); console.log(performance.now() - from);`;

/** Milliseconds of the import, and bytes of the code, minified. Adapters bring their framework: that is not counted. */
export async function measureEntries(execPath: string): Promise<readonly EntryFigures[]> {
  const sizes = await entrySizes();
  const times = await inTurns(
    execPath,
    sizes.map(({ entry }) => importing(entry)),
  );
  return sizes.map((size, index) => ({ ...size, importMs: times[index] ?? Number.NaN }));
}

const BARE = `
import express from "express";
const app = express();
const server = app.listen(0, () => { console.log(performance.now()); server.close(); });`;

const OURS = `
import { createReceiver, memoryInbox } from "@payhooks/core";
import { connectWebhooks } from "@payhooks/express";
import express from "express";
const receiver = createReceiver({ connect: { secret: "whsec_bench_0123456789" }, inbox: memoryInbox() });
receiver.onSettlementApproved(async () => {}).ignore("settlement.declined");
receiver.ignore("connected_account.approved").ignore("connected_account.declined");
await receiver.start();
const app = express();
app.use("/webhooks/connect", connectWebhooks(receiver));
const server = app.listen(0, async () => { console.log(performance.now()); server.close(); await receiver.close(); });`;

/** From the start of the process until it listens. */
export async function measureStart(execPath: string): Promise<StartFigures> {
  const [bareMs = Number.NaN, oursMs = Number.NaN] = await inTurns(execPath, [BARE, OURS]);
  return { bareMs, oursMs };
}
