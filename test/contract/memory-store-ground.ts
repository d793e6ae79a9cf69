import { environmentOf } from "../../packages/core/src/environment.ts";
import { memoryStore } from "../../packages/core/src/inbox/memory/store.ts";
import type { StoreGround } from "./store-ground.ts";

/** A memory that every process of the suite sees, on a clock that is moved by hand. */
export function memoryStoreGround(): StoreGround {
  let now = Date.now();
  const store = memoryStore({ environment: { ...environmentOf(), now: () => now } });
  return {
    connect: () => store,
    async advance(ms) {
      now += ms;
    },
    close: async () => {},
  };
}
