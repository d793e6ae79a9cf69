import { type MysqlStoreOptions, type MysqlTarget, mysqlStore } from "@payhooks/core/mysql";
import type { StoreFixture, StoreTraits } from "@payhooks/core/testing/store";
import { pause } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";

let fixtures = 0;

/** Finished events are listed too; the server's clock is believed; nobody is told of a write. */
export const mysqlTraits: StoreTraits = {
  oldestOfAll: true,
  listsFinished: true,
  announces: false,
  distrustsClock: false,
  scans: true,
};

/** Tables of its own on a running server. Time is real. */
export function mysqlStoreFixture(
  connect: () => MysqlTarget,
  options: MysqlStoreOptions = {},
): StoreFixture & { readonly prefix: string } {
  const prefix = `store_${process.pid}_${++fixtures}`;
  return {
    prefix,
    // It waits long: the contract says nothing about time, and the machine may be busy.
    connect: () => mysqlStore(connect(), { prefix, logger: silent, statementTimeoutMs: 30_000, ...options }),
    advance: (ms) => pause(ms),
    close: async () => {},
  };
}
