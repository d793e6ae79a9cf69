import { contractCases, inboxContract } from "./inbox-contract.ts";
import {
  memoryInboxFixture,
  memoryKind,
  sharedMemoryInboxFixture,
  sharedMemoryKind,
} from "./memory-inbox-fixture.ts";
import { tableCases } from "./table-cases.ts";

inboxContract("memory", memoryInboxFixture, memoryKind);
inboxContract("memory that outlives its processes", sharedMemoryInboxFixture, sharedMemoryKind, {
  cases: contractCases.filter((one) => !tableCases.includes(one)),
});
