import type { Clock } from "../../clock.ts";
import { createInbox } from "../engine.ts";
import type { Inbox } from "../inbox.ts";
import { memoryStore } from "./store.ts";

/** Options of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  readonly maxRecords?: number | undefined;
  readonly maxUnfinished?: number | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** Events in this process's memory. */
export function memoryInbox(options: MemoryInboxOptions = {}): Inbox {
  return createInbox(memoryStore(options), { clock: options.clock });
}
