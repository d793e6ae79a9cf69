import type { StoreTraits } from "@payhooks/core/testing/store";

/** The traits of a store that has the tables of SQLite, in a file or in a Durable Object. */
export const sqliteTraits: StoreTraits = {
  oldestOfAll: true,
  listsFinished: true,
  announces: false,
  distrustsClock: true,
  scans: true,
};
