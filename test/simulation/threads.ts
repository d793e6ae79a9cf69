import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";
import { bundleCore, moduleUrl, type Replacement } from "./core.ts";
import type { Exploration, ExploreOptions, Violation } from "./explore.ts";
import type { Size } from "./plan.ts";
import type { Coverage } from "./world.ts";

/** Histories that a worker plays before it reports. */
const SHARE = 100;

/** The input of a worker: the core as a module, and the size of its histories. */
export interface WorkerData {
  readonly core: string;
  readonly size: Size | undefined;
}

/** The histories that a worker is to play. */
export interface Share {
  readonly seed: number;
  readonly histories: number;
}

export interface ThreadsOptions extends Omit<ExploreOptions, "core"> {
  /** Mistakes in the core that is played with; default: none. */
  readonly changes?: readonly Replacement[];
  /** Called for each violation as soon as it is found. */
  readonly onViolation?: (violation: Violation) => void;
}

/** Plays histories in one thread for each processor. The result does not depend on the number of threads. */
export async function exploreInThreads({
  changes,
  seed,
  histories,
  size,
  enough = 1,
  onProgress,
  onViolation,
}: ThreadsOptions): Promise<Exploration> {
  const [core, module] = await Promise.all([bundleCore(changes), bundleWorker()]);
  const shares: Share[] = [];
  for (let at = 0; at < histories; at += SHARE) {
    shares.push({ seed: seed + at, histories: Math.min(SHARE, histories - at) });
  }
  const coverage: Coverage = new Map();
  const violations: Violation[] = [];
  const began = performance.now();
  let [played, calls, writes, next] = [0, 0, 0, 0];
  const add = (report: Exploration): void => {
    played += report.histories;
    calls += report.calls;
    writes += report.writes;
    violations.push(...report.violations);
    for (const [name, count] of report.coverage) coverage.set(name, (coverage.get(name) ?? 0) + count);
    for (const violation of report.violations) onViolation?.(violation);
    onProgress?.(played);
  };
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL(module), { workerData: { core, size } satisfies WorkerData });
    try {
      // Shares are taken in order, and a share that was begun is played: all before the last violation have been played.
      while (next < shares.length && violations.length < enough) {
        add(await play(worker, shares[next++] as Share));
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), shares.length) }, work));
  violations.sort((one, other) => one.seed - other.seed);
  return { histories: played, violations, coverage, calls, writes, tookMs: performance.now() - began };
}

function play(worker: Worker, share: Share): Promise<Exploration> {
  return new Promise((resolve, reject) => {
    worker.removeAllListeners();
    worker.once("error", reject);
    worker.once("message", resolve);
    worker.postMessage(share);
  });
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
