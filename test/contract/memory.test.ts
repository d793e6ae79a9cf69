import { contractCases, inboxContract } from "./inbox-contract.ts";
import { memoryGround, oneStepMemoryGround, sharedMemoryGround } from "./memory-ground.ts";
import { tableCases } from "./table-cases.ts";

inboxContract("memory", oneStepMemoryGround);
inboxContract("memory in the steps of a composed inbox", memoryGround);
inboxContract(
  "memory with a queue that outlives its process",
  sharedMemoryGround,
  contractCases.filter((contractCase) => !tableCases.includes(contractCase)),
);
