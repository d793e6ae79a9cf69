import { memoryQueue, memoryStore, type Queue } from "@payhooks/core/inbox";
import { fakeClock } from "@payhooks/core/testing";
import type { Ground } from "./rig.ts";

const BOUNDS = { maxRecords: 5_000, maxUnfinished: 5_000 };

/** Two processes on one memory are an impossible thing, but they hold the suite against the simplest inbox. */
export function memoryGround(): Ground {
  const clock = fakeClock();
  const store = memoryStore({ environment: clock, ...BOUNDS });
  // Closed with its last process only.
  const queue: Queue = { ...memoryQueue({ clock }), close: async () => {} };
  return {
    clock,
    advance: (ms) => clock.advance(ms),
    timeTravel: true,
    leaseMs: 30_000,
    depth: 4,
    durability: "process",
    accepts: "in-steps",
    open: () => ({ store, queue }),
    close: async () => {},
  };
}

/** As `memoryInbox` is made: the step that accepts also queues. */
export function oneStepMemoryGround(): Ground {
  const ground = memoryGround();
  const { clock } = ground;
  const own = memoryQueue({ clock });
  const store = memoryStore({ environment: clock, ...BOUNDS, enqueue: own.schedule });
  const queue: Queue = { ...own, close: async () => {} };
  return { ...ground, accepts: "at-once", open: () => ({ store, queue }) };
}

/** The same, as if the queue outlived its processes: it is not hurried at their end, and takes back what they had. */
export function sharedMemoryGround(): Ground {
  const ground = memoryGround();
  const { store, queue } = ground.open();
  const { hurry: _, ...outliving } = queue;
  return { ...ground, durability: "host", open: () => ({ store, queue: outliving }) };
}
