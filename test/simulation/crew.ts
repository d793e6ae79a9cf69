import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";
import { bundleCore, moduleUrl, type Replacement } from "./core.ts";
import type { Exploration, ExploreOptions } from "./explore.ts";
import type { Size } from "./plan.ts";
import type { Coverage } from "./world.ts";

/** Histories that a worker plays before it reports. */
const SHARE = 100;

/** What a worker is given: the core as a module, and the size of its histories. */
export interface WorkerData {
  readonly core: string;
  readonly size: Size | undefined;
}

/** The histories that a worker is to play. */
export interface Share {
  readonly seed: number;
  readonly histories: number;
}

export interface CrewOptions extends Omit<ExploreOptions, "core"> {
  /** Mistakes in the core that is played with; default: none. */
  readonly changes?: readonly Replacement[];
}

/** Plays histories in one thread for each processor. What it answers does not depend on how many there are. */
export async function exploreInThreads({
  changes,
  seed,
  histories,
  size,
  enough = 1,
  onProgress,
}: CrewOptions): Promise<Exploration> {
  const [core, module] = await Promise.all([bundleCore(changes), bundleWorker()]);
  const shares: Share[] = [];
  for (let played = 0; played < histories; played += SHARE) {
    shares.push({ seed: seed + played, histories: Math.min(SHARE, histories - played) });
  }
  const done: Exploration[] = [];
  const began = performance.now();
  let found = 0;
  let next = 0;
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL(module), { workerData: { core, size } satisfies WorkerData });
    try {
      // Shares are taken in order, and a share that was begun is played: all before the last violation have been played.
      while (next < shares.length && found < enough) {
        const at = next++;
        const report = await play(worker, shares[at] as Share);
        done[at] = report;
        found += report.violations.length;
        onProgress?.(done.reduce((sum, one) => sum + one.histories, 0));
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), shares.length) }, work));
  return { ...together(done), tookMs: performance.now() - began };
}

function play(worker: Worker, share: Share): Promise<Exploration> {
  return new Promise((resolve, reject) => {
    worker.removeAllListeners();
    worker.once("error", reject);
    worker.once("message", resolve);
    worker.postMessage(share);
  });
}

function together(parts: readonly Exploration[]): Omit<Exploration, "tookMs"> {
  const coverage: Coverage = new Map();
  for (const part of parts) {
    for (const [name, count] of part.coverage) coverage.set(name, (coverage.get(name) ?? 0) + count);
  }
  const sum = (of: (part: Exploration) => number): number => parts.reduce((all, part) => all + of(part), 0);
  return {
    histories: sum((part) => part.histories),
    calls: sum((part) => part.calls),
    writes: sum((part) => part.writes),
    violations: parts.flatMap(({ violations }) => violations),
    coverage,
  };
}

/** The simulator in one module: a thread of a test run does not load TypeScript. */
async function bundleWorker(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("./worker.ts", import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["payhooks-source"],
    logLevel: "silent",
  });
  return moduleUrl(outputFiles[0]?.contents ?? new Uint8Array());
}
