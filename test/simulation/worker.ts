/** A thread that plays the histories that it is given. It is bundled, with all that it imports: see `threads.ts`. */
import { parentPort, workerData } from "node:worker_threads";
import type { Core } from "./core.ts";
import { explore } from "./explore.ts";
import type { Share, WorkerData } from "./threads.ts";

const { core: module, size } = workerData as WorkerData;
const core = (await import(module)) as Core;

parentPort?.on("message", async (share: Share) => {
  const enough = Number.POSITIVE_INFINITY;
  parentPort?.postMessage(await explore({ ...share, core, enough, ...(size === undefined ? {} : { size }) }));
});
