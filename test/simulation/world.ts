import type { Chronicle } from "./chronicle.ts";
import type { SimulatedDatabase } from "./database.ts";
import { EPOCH } from "./deliveries.ts";
import type { Dice } from "./dice.ts";
import type { CallFault, PlannedFault, Site } from "./faults.ts";
import type { Plan } from "./plan.ts";
import type { SimulatedStore } from "./store.ts";
import type { Timeline } from "./timeline.ts";

/** How far replicas are behind. */
export const REPLICATION_MS = 4;

/** Counts the faults of a history. */
export type Coverage = Map<string, number>;

/** A process, as far as the world deals with it. */
export interface FaultTarget {
  readonly name: string;
  readonly isAlive: boolean;
  suffer(fault: PlannedFault): void;
}

/** Everything that the processes of a history share: time, randomness, the store, and the faults. */
export interface World {
  readonly plan: Plan;
  readonly dice: Dice;
  readonly timeline: Timeline;
  readonly store: SimulatedStore;
  readonly chronicle: Chronicle;
  /** The merchant's own, in which effects happen. */
  readonly database: SimulatedDatabase;
  /**
   * A process has come to a place at which a fault can happen. Faults of the process, or of everything, have happened when this
   * returns. It returns the fault of the call itself.
   */
  meet(site: Site, phase: "before" | "after", process: FaultTarget): CallFault | null;
  /** The next number of something, the same in each run of the plan. */
  count(what: string): number;
  /** How far the store's clock is from the right time. */
  storeOffsetMs: number;
  /** No process reaches the store before this time. */
  storeDownUntil: number;
  /** How often another store has taken the place of the store. */
  storeEpoch: number;
  /** Versions of records whose format only a process of the new version can read. */
  readonly newFormats: Set<string>;
  /** Writes of this time and later are on no replica yet. */
  marks: { readonly at: number; readonly mark: number }[];
}

/** The store's clock. */
export function storeNow(world: Pick<World, "timeline" | "storeOffsetMs">): number {
  return Math.floor(EPOCH + world.timeline.now + world.storeOffsetMs);
}
