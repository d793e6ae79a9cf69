import { TELL_PREFIX } from "@payhooks/core/inbox";
import type { ChildConfig, KillPoint } from "./child-config.ts";
import type { Parts } from "./inbox.ts";

/** The same store and queue, but the process is killed when it is at a point for the n-th time. */
export function withKill(parts: Parts, killAt: ChildConfig["killAt"]): Parts {
  if (killAt === undefined) return parts;
  const { store, queue } = parts;
  let left = killAt.nth;
  const reach = (point: KillPoint): void => {
    if (point === killAt.point && --left === 0) process.kill(process.pid, "SIGKILL");
  };
  return {
    ...parts,
    store: {
      ...store,
      async accept(event, options) {
        reach("1 verified");
        const accepted = await store.accept(event, options);
        reach("2 claimed");
        return accepted;
      },
      async markQueued(job) {
        await store.markQueued(job);
        reach("5 flagged");
      },
      async begin(job, options) {
        const begun = await store.begin(job, options);
        if (begun.kind === "leased") reach("6 begun");
        return begun;
      },
      async step(job, token, name, change) {
        // Of an event's own handler: that of an onHeld handler leaves no line in the log which could be there twice.
        if (change.kind === "done" && !name.startsWith(TELL_PREFIX)) reach("7 ran");
        const fenced = await store.step(job, token, name, change);
        if (change.kind === "started") reach("7 started");
        if (change.kind === "done") reach("7 stored");
        return fenced;
      },
      async finish(job, token, ending) {
        // The end of the event says that its last handler is done.
        if (ending.kind === "done") reach("7 ran");
        const finished = await store.finish(job, token, ending);
        if (ending.kind === "done") reach("7 finished");
        if (ending.kind === "retry") reach("8 retried");
        if (ending.kind === "held") reach("9 held");
        return finished;
      },
    },
    queue: {
      ...queue,
      async add(job, options) {
        await queue.add(job, options);
        reach("3 added");
      },
      async barrier() {
        await queue.barrier?.();
        reach("4 barrier");
      },
    },
  };
}
