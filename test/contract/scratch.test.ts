import { inboxContract } from "./inbox-contract.ts";
import { memoryGround, sharedMemoryGround } from "./memory-ground.ts";
import { crashCases } from "./crash-cases.ts";
import { beginCases } from "./begin-cases.ts";
import { heldCases } from "./held-cases.ts";
import { writeCases } from "./write-cases.ts";
const cases = beginCases;
inboxContract("memory", memoryGround, cases);
inboxContract("shared", sharedMemoryGround, cases);
