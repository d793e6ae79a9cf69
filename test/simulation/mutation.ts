import { loadCore } from "./core.ts";
import { explore } from "./explore.ts";
import type { Mutant } from "./mutants.ts";
import { DEFAULT_SIZE } from "./plan.ts";
import { exploreInThreads } from "./threads.ts";

export interface Hunt {
  readonly mutant: string;
  /** The invariant that found it; null if none did. */
  readonly foundBy: string | null;
  /** The number of histories before it was found. */
  readonly histories: number;
}

/** Most mistakes are found in the first histories, before threads would have started. */
const FIRST = 200;

/** Plays histories with a mistake in the core until an invariant is broken. */
export async function hunt(
  { name, changes, size = DEFAULT_SIZE }: Mutant,
  seed: number,
  histories: number,
): Promise<Hunt> {
  const core = await loadCore(changes);
  const quick = await explore({ core, seed, size, histories: Math.min(FIRST, histories) });
  const [found] = quick.violations;
  if (found !== undefined) return { mutant: name, foundBy: found.invariant, histories: quick.histories };
  const long = await exploreInThreads({ changes, size, seed: seed + FIRST, histories: histories - FIRST });
  const [late] = long.violations;
  const last = late === undefined ? histories : late.seed - seed + 1;
  return { mutant: name, foundBy: late?.invariant ?? null, histories: last };
}
