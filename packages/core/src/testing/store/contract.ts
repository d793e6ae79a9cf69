import { dueCases } from "./due-cases.ts";
import { type StoreCase, type StoreFixture, StoreRig, type StoreTraits } from "./fixture.ts";
import { listCases } from "./list-cases.ts";
import { scanCases } from "./scan-cases.ts";
import { swapCases } from "./swap-cases.ts";
import { upkeepCases } from "./upkeep-cases.ts";
import { walkCase } from "./walk-case.ts";

const cases: readonly StoreCase[] = [
  ...swapCases,
  ...dueCases,
  ...listCases,
  ...scanCases,
  ...upkeepCases,
  walkCase,
];

/** One test of the contract. */
export interface StoreTest {
  /** The behaviour that the store must have, in words. */
  readonly name: string;
  /** Resolves if the store has this behaviour, and rejects with an `AssertionError` if it does not. */
  readonly run: () => Promise<void>;
}

/**
 * The contract of stores as a list of tests, for any test runner. Each test makes a fixture of its own, and removes it. No test
 * lets more than 2 s pass, and none measures how long the store takes. Test what is specific to your store, such as faults of
 * its server, in tests of your own.
 *
 * @param makeFixture Makes fresh data that no other test sees.
 * @param traits How the store differs from others. Tests of a trait that it lacks are left out.
 *
 * @example
 * ```ts
 * import { storeContract } from "@payhooks/core/testing/store";
 * import { it } from "vitest";
 *
 * for (const { name, run } of storeContract(makeFixture, { oldestOfAll: true })) it(name, run);
 * ```
 */
export function storeContract(
  makeFixture: () => StoreFixture | Promise<StoreFixture>,
  traits: StoreTraits = {},
): readonly StoreTest[] {
  return cases
    .filter(({ needs }) => needs === undefined || traits[needs] === true)
    .map(({ name, run }) => ({
      name,
      async run() {
        const rig = await StoreRig.on(makeFixture);
        try {
          await run(rig);
        } finally {
          await rig.close();
        }
      },
    }));
}
