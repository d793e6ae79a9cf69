import type { StoreFixture } from "@payhooks/core/testing/store";
import { memoryStore } from "../../packages/core/src/memory/store.ts";
import { environmentOf } from "../../packages/core/src/time/environment.ts";

/** A memory that every process of the suite sees, on a clock that is moved by hand. */
export function memoryStoreFixture(): StoreFixture {
  let now = Date.now();
  const store = memoryStore({ clock: { ...environmentOf(), now: () => now } });
  return {
    connect: () => store,
    async advance(ms) {
      now += ms;
    },
    close: async () => {},
  };
}
