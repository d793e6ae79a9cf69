/**
 * For authors of a store: what a store is, the engine that makes an inbox of one, and the way to move records from one to
 * another.
 *
 * @module
 */

export { type MemoryStoreOptions, memoryStore } from "../memory/store.ts";
export type { Loss } from "../notices/notice.ts";
export type { Awaitable } from "../time/awaitable.ts";
export type { EventFilter } from "./contract/event-query.ts";
export type { Inbox } from "./contract/inbox.ts";
export type { Seal } from "./contract/seal.ts";
export type {
  DueRecord,
  DueRecords,
  ListCursor,
  ListedEvent,
  ListOrder,
  ListPage,
  RecordStore,
  ScanPage,
  StoreCounts,
  Swap,
  SwapResult,
  VersionedRecord,
} from "./contract/store.ts";
export { createInbox, type InboxOptions } from "./engine.ts";
export { type MoveOptions, type MoveReport, moveRecords } from "./move.ts";
export { canaryKey } from "./record/canary.ts";
export {
  decodeRecord,
  encodeRecord,
  isUnreadable,
  type SealedRecord,
  type SealedText,
  type UnreadableRecord,
} from "./record/codec.ts";
export type { EventLabels, EventState, RecordIndex } from "./record/index-of.ts";
export type { Lane, Lanes } from "./record/lane.ts";
export type { IdempotencyRecord } from "./record/record.ts";
