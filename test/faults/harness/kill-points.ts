import type { RecordStore } from "@payhooks/core/inbox";
import { around } from "./around.ts";
import { WRITES, type Write, writeNamer } from "./writes.ts";

/** The points at which a process is killed: right before it sends a write, or right after an answer of the store. */
export type KillPoint =
  | `before ${Write}`
  | `after ${Write}`
  /** Due records were handed out, and none of them was begun. */
  | "after take"
  /** An event is written, and nobody knows whether replicas have it. */
  | "before replicated"
  | "after replicated";

/** Those that every store passes. */
export const KILL_POINTS: readonly KillPoint[] = [
  ...WRITES.flatMap((write) => [`before ${write}`, `after ${write}`] as const),
  "after take",
];

/** Those of a store that waits for replicas. */
export const REPLICA_POINTS: readonly KillPoint[] = ["before replicated", "after replicated"];

/** Here a handler has ended and nothing says so: a second run cannot be helped. */
export const RUNS_TWICE: readonly KillPoint[] = ["before done", "before end and start"];

/**
 * Here a handler may have ended, and nothing says so yet: one runs, and ends at just this moment, or the run ends with another
 * handler of its event that has failed or that this process lacks.
 */
export const MAY_RUN_TWICE: readonly KillPoint[] = [
  ...RUNS_TWICE,
  "before renew",
  "after renew",
  "before retry",
  "before held",
];

/** The point at which a process dies, and the visit to it. */
export interface KillAt {
  readonly point: KillPoint;
  readonly nth: number;
}

/**
 * The same store, but the process is killed when it is at a point for the n-th time. `dies` is told of which event,
 * `payTxnId status`, right before.
 */
export function withKill(
  store: RecordStore,
  killAt: KillAt | undefined,
  dies: (point: KillPoint, key: string) => void,
): RecordStore {
  if (killAt === undefined) return store;
  const nameOf = writeNamer();
  let left = killAt.nth;
  const reach = (point: KillPoint, key: string): void => {
    if (point !== killAt.point || --left > 0) return;
    dies(point, key);
    process.kill(process.pid, "SIGKILL");
  };
  const { replicated } = store;
  return around(store, {
    async swap(items) {
      const named = items.map(nameOf);
      for (const one of named) if (one !== null) reach(`before ${one.write}`, one.key);
      const results = await store.swap(items);
      named.forEach((one, at) => {
        if (one !== null && results[at]?.kind === "written") reach(`after ${one.write}`, one.key);
      });
      return results;
    },
    async takeDue(limit, hideMs) {
      const due = await store.takeDue(limit, hideMs);
      if (due.records.length > 0) reach("after take", "-");
      return due;
    },
    ...(replicated === undefined
      ? {}
      : {
          async replicated(items) {
            reach("before replicated", "-");
            await replicated.call(store, items);
            reach("after replicated", "-");
          },
        }),
  });
}
