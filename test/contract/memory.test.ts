import { contractCases, inboxContract } from "./inbox-contract.ts";
import { memoryGround, memoryKind, sharedMemoryGround, sharedMemoryKind } from "./memory-ground.ts";
import { tableCases } from "./table-cases.ts";

inboxContract("memory", memoryGround, memoryKind);
inboxContract("memory that outlives its processes", sharedMemoryGround, sharedMemoryKind, {
  cases: contractCases.filter((one) => !tableCases.includes(one)),
});
