/** Searches for a history on which stores differ, and explains the difference. */
import { generateHistory } from "./generate.ts";
import { describeHistory } from "./history.ts";
import { type Difference, type OnSituation, play } from "./play.ts";
import { type Shortened, shorten } from "./shorten.ts";
import type { Kind } from "./world.ts";

/** The first history on which stores differ. */
export interface FoundDifference {
  readonly seed: number;
  /** How many were played, this one included. */
  readonly histories: number;
  readonly difference: Difference;
}

/** Plays histories from a seed on. Null if the stores agree on all of them. */
export async function findDifference(
  from: number,
  count: number,
  kinds: readonly Kind[],
  onSituation?: OnSituation,
): Promise<FoundDifference | null> {
  for (let histories = 1; histories <= count; histories++) {
    const seed = from + histories - 1;
    const difference = await play(generateHistory(seed), kinds, onSituation);
    if (difference !== null) return { seed, histories, difference };
  }
  return null;
}

/** A history that is as short as possible, both answers, and the command that plays it again. */
export async function explain(
  { seed, difference }: FoundDifference,
  kinds: readonly Kind[],
): Promise<string> {
  const short = await shorten(generateHistory(seed), difference, (history) => play(history, kinds));
  return [
    `The stores do not agree on the history of seed ${seed}. A short part of it on which they differ:`,
    describeHistory(short.history),
    ...answersOf(short),
    `PAYHOOKS_SEED=${seed} PAYHOOKS_AGREEMENT=1 npx vitest run --project simulation test/simulation/agreement`,
  ].join("\n\n");
}

const MOST_SHOWN = 4_000;

function answersOf({ difference: { expected, found } }: Shortened): readonly string[] {
  return [expected, found].map(
    ({ store, answer }) =>
      `${store} says ${(JSON.stringify(answer, null, 2) ?? "nothing").slice(0, MOST_SHOWN)}`,
  );
}
