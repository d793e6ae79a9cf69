import { memoryQueue, memoryStore } from "@payhooks/core/inbox";
import { fakeClock } from "@payhooks/core/testing";
import { inboxContract } from "./inbox-contract.ts";
import type { Ground } from "./rig.ts";

/** Two processes on one memory are an impossible thing, but they hold the suite against the simplest inbox. */
export function memoryGround(): Ground {
  const clock = fakeClock();
  const store = memoryStore({ clock, maxRecords: 5_000, maxUnfinished: 5_000 });
  const queue = memoryQueue({ clock });
  return {
    clock,
    advance: (ms) => clock.advance(ms),
    timeTravel: true,
    leaseMs: 30_000,
    depth: 4,
    durability: "process",
    open: () => ({ store, queue }),
    close: async () => {},
  };
}

inboxContract("memory", memoryGround);
