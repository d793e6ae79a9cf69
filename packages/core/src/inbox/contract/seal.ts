import type { UndatedNotice } from "../../notices/notice.ts";
import type { Environment } from "../../time/environment.ts";
import type { RecordStore } from "./store.ts";

/**
 * Seals the contents of an inbox, so that its database reveals no field of an event. `aesGcm` of `@payhooks/core/seal` makes a
 * seal.
 */
export interface Seal {
  /**
   * Wraps a store, so that records are sealed before they reach it, and opened when they come back.
   *
   * @param notify gets a notice if the keys cannot be read again
   */
  wrap(store: RecordStore, environment?: Environment, notify?: (notice: UndatedNotice) => void): RecordStore;
}
