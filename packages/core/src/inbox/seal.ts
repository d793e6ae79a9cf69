import type { Environment } from "../time/environment.ts";
import type { RecordStore } from "./store.ts";

/** Seals what an inbox keeps, so that its database shows nothing of an event. `aesGcm` of `@payhooks/core/seal` makes one. */
export interface Seal {
  /** The same store, whose records are sealed before they reach it, and opened when they come back. */
  over(store: RecordStore, environment?: Environment): RecordStore;
}
