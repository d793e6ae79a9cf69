import { type Clock, systemClock } from "../../clock.ts";
import { createInbox } from "../engine.ts";
import type { Inbox } from "../inbox.ts";
import { memoryStore } from "./store.ts";

/** Options of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /** Finished records that are kept to recognise copies. Default 100,000 (about 30 MB). */
  readonly maxRecords?: number | undefined;
  /** Accepted events that may wait or run; beyond, deliveries are answered 503. Default 10,000. */
  readonly maxUnfinished?: number | undefined;
  /** How long a handler may be silent before its event is taken again. Default 30 s. */
  readonly leaseMs?: number | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** Temporary. */
export function memoryInbox({
  maxRecords = 100_000,
  maxUnfinished = 10_000,
  leaseMs,
  clock = systemClock,
}: MemoryInboxOptions = {}): Inbox {
  return createInbox(memoryStore({ clock, maxRecords, maxUnfinished }), { leaseMs, clock });
}
