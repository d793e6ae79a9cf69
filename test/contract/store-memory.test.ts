import { storeContract } from "./store-contract.ts";
import { memoryStoreGround } from "./store-memory-ground.ts";

storeContract("memory", memoryStoreGround, {
  oldestOfAll: true,
  listsFinished: true,
  announces: false,
  distrustsClock: true,
});
