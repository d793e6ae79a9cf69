import type { Inbox } from "../inbox/contract/inbox.ts";
import { createInbox } from "../inbox/engine.ts";
import { checkNames } from "../protocol/check-names.ts";
import type { Clock } from "../time/clock.ts";
import { environmentOf } from "../time/environment.ts";
import { memoryStore } from "./store.ts";

/** Options of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /** How many finished records are kept to recognise copies. Default 100,000 (about 40 MB). */
  readonly maxRecords?: number | undefined;
  /** How many accepted events may wait or run. Above this, deliveries are answered 503. Default 10,000. */
  readonly maxUnfinished?: number | undefined;
  /** How long a handler may be silent before its event is taken again. Default 30 s. */
  readonly leaseMs?: number | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/**
 * An inbox in this process's memory, for development, tests and `ack: "handled"`. An acknowledged event survives a graceful
 * close, and nothing else. When `maxRecords` is reached, the least recently used finished records are dropped, and the window
 * becomes shorter: an unknown event that was signed before the newest dropped record is refused as expired, so that nothing
 * runs twice.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`.
 * @example createReceiver({ payments: { publicKey }, inbox: memoryInbox() })
 */
export function memoryInbox(options: MemoryInboxOptions = {}): Inbox {
  checkNames("memoryInbox", options, { maxRecords: true, maxUnfinished: true, leaseMs: true, clock: true });
  const { maxRecords, maxUnfinished, leaseMs, clock } = options;
  const environment = environmentOf(clock);
  return createInbox(memoryStore({ maxRecords, maxUnfinished, clock: environment }), {
    leaseMs,
    clock: environment,
  });
}
