import type { PlannedFault } from "./faults.ts";
import type { SimulatedProcess } from "./process.ts";
import { REPLICATION_MS, type World } from "./world.ts";

/**
 * How much a store without replicas loses when another store takes its place: the writes of this many milliseconds.
 */
const LOST_MS = 150;
const GRACE_MS = 500;
/** After its grace a process is closed in this time. */
const CLOSED_MS = 1_000;

/** Something happens to a process, or to the store. `restart` brings the process back after a while. */
export function applySystemFault(
  world: World,
  process: SimulatedProcess,
  { what, site }: PlannedFault,
  restart: () => void,
): void {
  const { timeline, dice, plan, chronicle } = world;
  const number = world.count("blows");
  const now = timeline.now;
  const long = plan.leaseMs * dice.pick([0.2, 0.6, 1.5, 3], "length", number);
  let until = now;
  switch (what) {
    case "death":
      process.die();
      restart();
      break;
    case "freeze":
      until = process.frozenUntil = Math.max(now, process.frozenUntil) + long;
      break;
    case "sleep":
      until = process.frozenUntil = Math.max(now, process.frozenUntil) + long;
      process.sleptMs += long;
      break;
    case "wall-back":
      process.wallOffsetMs -= dice.pick([30, 2_000, 3_600_000], "jump", number);
      break;
    case "wall-forward":
      process.wallOffsetMs += dice.pick([30, 2_000, 3_600_000], "jump", number);
      break;
    case "store-clock-back":
      world.storeOffsetMs -= dice.pick([30, 2_000, 8_000], "jump", number);
      break;
    case "store-clock-forward":
      world.storeOffsetMs += dice.pick([30, 2_000, 8_000], "jump", number);
      break;
    case "cut-off":
      until = process.cutOffUntil = now + long;
      break;
    case "store-down":
      until = world.storeDownUntil = now + long;
      break;
    case "failover": {
      const lostSince = now - (plan.replicated ? REPLICATION_MS : LOST_MS);
      const mark = world.marks.find(({ at }) => at >= lostSince)?.mark ?? world.store.mark;
      lose(world, world.store.loseSince(mark), lostSince);
      world.marks = world.marks.filter((kept) => kept.mark < mark);
      break;
    }
    case "lose-all":
      lose(world, world.store.loseAll(`simulated-${number}`), Number.NEGATIVE_INFINITY);
      world.marks = [];
      break;
    case "close":
    case "deploy":
      process.close(GRACE_MS, restart);
      until = now + GRACE_MS + CLOSED_MS;
      break;
  }
  chronicle.faults.push({ at: now, until, what, where: site, process: process.name });
}

function lose(world: World, keys: readonly string[], since: number): void {
  world.storeEpoch++;
  const isEverything = since === Number.NEGATIVE_INFINITY;
  world.chronicle.losses.push({ at: world.timeline.now, keys: new Set(keys), since, isEverything });
  world.chronicle.log(
    world.timeline.now,
    "store",
    () => `loses ${keys.map((key) => key.slice(0, 6)).join(", ") || "nothing"}`,
  );
}
