/** Mistakes in the core that the invariants must find: each one is played until they do. */
import { constants, setPriority } from "node:os";
import { expect, it } from "vitest";
import { MUTANTS } from "./mutants.ts";
import { hunt } from "./mutation.ts";

/** How many histories may pass until a mistake is found. Most are found in the first hundred. */
const HISTORIES = 30_000;

// Tests that measure on a real clock run beside this, and go first.
setPriority(constants.priority.PRIORITY_LOW);

it.each(MUTANTS)("$name", { timeout: 30 * 60_000 }, async (mutant) => {
  expect(await hunt(mutant, 1, HISTORIES)).toMatchObject({ foundBy: expect.any(String) });
});
