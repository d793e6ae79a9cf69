import { memoryQueue, memoryStore, type Queue } from "@payhooks/core/inbox";
import { fakeClock } from "@payhooks/core/testing";
import type { Ground } from "./rig.ts";

/** Two processes on one memory are an impossible thing, but they hold the suite against the simplest inbox. */
export function memoryGround(): Ground {
  const clock = fakeClock();
  const store = memoryStore({ clock, maxRecords: 5_000, maxUnfinished: 5_000 });
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

/** The same, as if the queue outlived its processes: it is not hurried at their end, and takes back what they had. */
export function sharedMemoryGround(): Ground {
  const ground = memoryGround();
  const { store, queue } = ground.open();
  const { hurry: _, ...outliving } = queue;
  return { ...ground, durability: "host", open: () => ({ store, queue: outliving }) };
}
