/**
 * The contract of every store of records. A store's own test file gives it a `StoreGround`: fresh data each time, on
 * which the suite opens the store of as many processes as it likes, and says in what it differs from others.
 *
 * The cases work on any clock, injected or real: none needs more than 2 s to pass, and none measures how long the store
 * takes. What is specific to one store (its server's faults, its file's formats, its bounds) is for its own tests.
 */
import { describe, it } from "vitest";
import { dueCases } from "./store-due-cases.ts";
import { type MakeStoreGround, type StoreCase, StoreRig, type StoreTraits } from "./store-ground.ts";
import { listCases } from "./store-list-cases.ts";
import { swapCases } from "./store-swap-cases.ts";
import { upkeepCases } from "./store-upkeep-cases.ts";
import { walkCase } from "./store-walk-case.ts";

/** Every behaviour, by name; `store-mutants.test.ts` runs them against stores that must fail them. */
export const storeCases: readonly StoreCase[] = [
  ...swapCases,
  ...dueCases,
  ...listCases,
  ...upkeepCases,
  walkCase,
];

/** Runs one case on fresh data. */
export async function runStoreCase(storeCase: StoreCase, make: MakeStoreGround): Promise<void> {
  const rig = await StoreRig.on(make);
  try {
    await storeCase.run(rig);
  } finally {
    await rig.close();
  }
}

/** Declares a test for each case that is meant for the store; `concurrent` where time is real, and cases wait for it. */
export function storeContract(
  name: string,
  make: MakeStoreGround,
  traits: StoreTraits,
  { concurrent = false }: { readonly concurrent?: boolean } = {},
): void {
  describe(`the store contract: ${name}`, () => {
    for (const storeCase of storeCases) {
      if (storeCase.needs !== undefined && !traits[storeCase.needs]) continue;
      it(storeCase.name, { timeout: 60_000, concurrent }, () => runStoreCase(storeCase, make));
    }
  });
}
