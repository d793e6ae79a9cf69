import { type RedisStoreOptions, type RedisTarget, redisStore } from "@payhooks/core/redis";
import type { StoreFixture, StoreTraits } from "@payhooks/core/testing/store";
import type { RecordStore } from "../../packages/core/src/inbox/contract/store.ts";
import { pause } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";

let fixtures = 0;

/** Redis lists no finished events, and its server's clock is believed. */
export const redisTraits: StoreTraits = {
  oldestOfAll: true,
  listsFinished: false,
  announces: true,
  distrustsClock: false,
  scans: true,
};

/** Keys of their own on a running Redis. Time is real. */
export function redisStoreFixture(
  connect: () => RedisTarget,
  options: RedisStoreOptions = {},
): StoreFixture & { readonly prefix: string } {
  const prefix = `store-${process.pid}-${++fixtures}`;
  return {
    prefix,
    connect: (): RecordStore => redisStore(connect(), { prefix, logger: silent, ...options }),
    advance: (ms) => pause(ms),
    close: async () => {},
  };
}
