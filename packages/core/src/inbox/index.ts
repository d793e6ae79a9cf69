/**
 * The interfaces behind `inbox`, and the way to build one from a store and a queue of your own.
 *
 * @module
 */
export type { Awaitable } from "../awaitable.ts";
export type { Cancellation } from "../cancellation.ts";
export { type ComposeOptions, composeInbox } from "./compose.ts";
export * from "./inbox.ts";
export { type MemoryInboxOptions, memoryInbox } from "./memory/index.ts";
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./memory/store.ts";
export type { BeginOptions, Disposition, Fenced, Finished, IdempotencyStore, Queue } from "./store.ts";
