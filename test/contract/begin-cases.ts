import type { ContractCase } from "./rig.ts";
export const beginCases: readonly ContractCase[] = [];
