import { contractCases, inboxContract } from "./inbox-contract.ts";
import { memoryGround, sharedMemoryGround } from "./memory-ground.ts";
import { tableCases } from "./table-cases.ts";

inboxContract("memory", memoryGround);
inboxContract(
  "memory with a queue that outlives its process",
  sharedMemoryGround,
  contractCases.filter((contractCase) => !tableCases.includes(contractCase)),
);
