import type { ContractCase } from "./rig.ts";
export const writeCases: readonly ContractCase[] = [];
