import { type StoreFixture, storeContract } from "@payhooks/core/testing/store";
import { describe, it } from "vitest";
import { SimulatedStore } from "./store.ts";

/** One map that every process of the suite sees, on a clock that is moved by hand. */
function simulatedStoreFixture(): StoreFixture {
  let now = Date.now();
  const store = new SimulatedStore({ now: () => now, datasetId: crypto.randomUUID() });
  return {
    connect: () => store,
    async advance(ms) {
      now += ms;
    },
    close: async () => {},
  };
}

describe("the store contract: the simulated store", () => {
  for (const { name, run } of storeContract(simulatedStoreFixture, {
    oldestOfAll: true,
    listsFinished: true,
    announces: false,
    distrustsClock: true,
  }))
    it(name, run);
});
