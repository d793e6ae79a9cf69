/** Plays histories on several stores, and fails with the shortest one on which they differ. */
import { expect } from "vitest";
import { newSeed } from "../../faults/harness/scope.ts";
import { explain, findDifference } from "./find.ts";
import type { Kind } from "./world.ts";

/** How many histories were asked for; 0: the usual number. */
export const asked: number = Number(process.env.PAYHOOKS_AGREEMENT ?? 0);
const seed = asked > 0 || process.env.PAYHOOKS_SEED !== undefined ? newSeed("agreement of stores") : 1;
export const timeout: number = asked > 0 ? 86_400_000 : 120_000;
/** Each of these has to come up so often in a run of the usual length, or it says too little. */
const OFTEN = 15;

/** Fails unless all kinds agree, and each thing that may happen in a history came up `often` enough. */
export async function expectAgreement(
  kinds: readonly Kind[],
  histories: number,
  often: number = OFTEN,
): Promise<void> {
  const met = new Map<string, number>();
  const start = performance.now();
  const found = await findDifference(seed, histories, kinds, (what) => {
    met.set(what, (met.get(what) ?? 0) + 1);
  });
  if (found !== null) expect.fail(await explain(found, kinds));
  const perSecond = ((1_000 * histories) / (performance.now() - start)).toFixed(0);
  console.log(`${histories} histories from seed ${seed}, ${perSecond} a second, differences 0; met:`);
  console.table(Object.fromEntries([...met].toSorted()));
  if (asked > 0) return;
  for (const what of MET) expect(met.get(what) ?? 0, what).toBeGreaterThanOrEqual(often);
}

const MET = [
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
