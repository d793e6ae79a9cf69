/**
 * The interfaces behind `inbox`, and the way to build one on a store of your own.
 *
 * @module
 */
export type { Awaitable } from "../awaitable.ts";
export type { Cancellation } from "../cancellation.ts";
export type { Environment } from "../environment.ts";
export { createInbox, type InboxOptions } from "./engine.ts";
export * from "./inbox.ts";
export { type MemoryInboxOptions, memoryInbox } from "./memory/index.ts";
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./memory/store.ts";
export { decodeRecord, encodeRecord, isUnreadable, type Unreadable } from "./record/codec.ts";
export { type EventLabels, type EventState, indexOf, type RecordIndex } from "./record/index-of.ts";
export type { IdempotencyRecord } from "./record/record.ts";
export type {
  Counts,
  DueRecord,
  DueRecords,
  ListCursor,
  Listed,
  RecordStore,
  Swap,
  SwapResult,
  Versioned,
} from "./store.ts";
