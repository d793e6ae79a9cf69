/** Plays histories on several stores. If they differ, it fails with a history that is as short as possible. */
import { expect } from "vitest";
import { newSeed } from "../../faults/harness/scope.ts";
import { explain, findDifference } from "./find.ts";
import type { Kind } from "./world.ts";

/** The number of histories that `PAYHOOKS_AGREEMENT` asks for; 0 for the usual number. */
export const requestedHistories: number = Number(process.env.PAYHOOKS_AGREEMENT ?? 0);
const seed =
  requestedHistories > 0 || process.env.PAYHOOKS_SEED !== undefined ? newSeed("agreement of stores") : 1;
export const timeout: number = requestedHistories > 0 ? 86_400_000 : 120_000;
/** In a run of the usual length, each situation has to occur at least so often. */
const MIN_OCCURRENCES = 15;

/** Fails unless all kinds agree, and each situation occurred at least `minOccurrences` times. */
export async function expectAgreement(
  kinds: readonly Kind[],
  histories: number,
  minOccurrences: number = MIN_OCCURRENCES,
): Promise<void> {
  const occurrences = new Map<string, number>();
  const start = performance.now();
  const found = await findDifference(seed, histories, kinds, (situation) => {
    occurrences.set(situation, (occurrences.get(situation) ?? 0) + 1);
  });
  if (found !== null) expect.fail(await explain(found, kinds));
  const perSecond = ((1_000 * histories) / (performance.now() - start)).toFixed(0);
  console.log(`${histories} histories from seed ${seed}, ${perSecond} a second, differences 0. Occurrences:`);
  console.table(Object.fromEntries([...occurrences].toSorted()));
  if (requestedHistories > 0) return;
  for (const situation of SITUATIONS)
    expect(occurrences.get(situation) ?? 0, situation).toBeGreaterThanOrEqual(minOccurrences);
}

const SITUATIONS = [
  ...[
    "counts",
    "list",
    "now",
    "pass",
    "canary",
    "prune",
    "read",
    "reopen",
    "resend",
    "replicated",
    "swap",
    "take",
  ],
  ...["a write that is written", "a write that is conflict", "a write that is unfit and written"],
  ...["a take of none", "a take of one", "a take of several", "a list of several pages"],
];
