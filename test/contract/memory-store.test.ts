import { storeContract } from "@payhooks/core/testing/store";
import { describe, it } from "vitest";
import { memoryStoreFixture } from "./memory-store-fixture.ts";

describe("the store contract: memory", () => {
  for (const { name, run } of storeContract(memoryStoreFixture, {
    oldestOfAll: true,
    listsFinished: true,
    announces: false,
    distrustsClock: true,
  }))
    it(name, run);
});
