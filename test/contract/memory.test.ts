import { contractCases, inboxContract } from "./inbox-contract.ts";
import { memoryGround, sharedMemoryGround } from "./memory-ground.ts";
import { tableCases } from "./table-cases.ts";

inboxContract("memory", memoryGround);
inboxContract(
  "memory that outlives its processes",
  sharedMemoryGround,
  contractCases.filter((contractCase) => !tableCases.includes(contractCase)),
);
