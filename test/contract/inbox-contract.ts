import { describe, it } from "vitest";
import { crashCases } from "./crash-cases.ts";
import { leaseCases } from "./lease-cases.ts";
import type { ContractCase, MakeGround } from "./rig.ts";
import { tableCases } from "./table-cases.ts";

export const contractCases: readonly ContractCase[] = [...tableCases, ...leaseCases, ...crashCases];

export function inboxContract(name: string, make: MakeGround): void {
  describe(`the inbox contract: ${name}`, () => {
    for (const contractCase of contractCases) it(contractCase.name, () => contractCase.run(make), 60_000);
  });
}
