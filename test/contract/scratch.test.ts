import { contractCases, inboxContract } from "./inbox-contract.ts";
import { memoryGround, sharedMemoryGround } from "./memory-ground.ts";
import { tableCases } from "./table-cases.ts";

const cases = contractCases.filter((one) => !tableCases.includes(one));
inboxContract("memory", memoryGround, cases);
inboxContract("shared", sharedMemoryGround, cases);
