import { memoryStoreGround } from "./memory-store-ground.ts";
import { storeContract } from "./store-contract.ts";

storeContract("memory", memoryStoreGround, {
  oldestOfAll: true,
  listsFinished: true,
  announces: false,
  distrustsClock: true,
});
