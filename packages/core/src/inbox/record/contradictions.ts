/**
 * A record keeps only a few of the events that contradict it. Anybody with a key can sign any number of contradictions
 * under one id, and each change of a record reads and writes the whole record. While those that it keeps are undecided,
 * further contradictions are only counted, in the history of the last. A contradiction that has ended makes room. It
 * never runs by itself, so a late copy of it is at most held once more.
 */
import { addHistory, type IdempotencyRecord, isUnfinished, type OpenWork, type Slot } from "./record.ts";

/**
 * A record keeps this many events that were accepted to be held, including decided ones. Beside these, it has at most
 * one event of each status that was accepted to run: two of a payment, and one for each stage of a source.
 */
export const MAX_CONTRADICTIONS = 8;
/** The beginning of the line that counts the others. */
const COUNT_LINE_PREFIX = "and more: ";
/** They are counted at most this often, because each count is a write. */
const CONTRADICTIONS_APART_MS = 1_000;

/** The last undecided contradiction, if there is no room for a further one. Null if there is room. The call may have made it. */
export function makeRoom({ slots }: IdempotencyRecord): string | null {
  const contradictions = Object.entries(slots)
    .filter(([, { verdict }]) => verdict !== "run")
    .sort(([, a], [, b]) => a.acceptedAt - b.acceptedAt);
  if (contradictions.length < MAX_CONTRADICTIONS) return null;
  const [endedKey] = contradictions.find(([, slot]) => !isUnfinished(slot)) ?? [];
  if (endedKey === undefined) return contradictions.at(-1)?.[0] ?? null;
  delete slots[endedKey];
  return null;
}

/** Counts a contradiction that is not kept. False if nothing has to be written. */
export function countFurtherContradiction({ work }: Slot, now: number): boolean {
  const countLine = work?.history.find(({ what }) => what.startsWith(COUNT_LINE_PREFIX));
  if (work === null || (countLine !== undefined && now - countLine.at < CONTRADICTIONS_APART_MS))
    return false;
  const remaining: Pick<OpenWork, "history"> = { history: work.history.filter((line) => line !== countLine) };
  addHistory(remaining, {
    at: now,
    what: COUNT_LINE_PREFIX + (countLine === undefined ? 1 : countOf(countLine.what) + 1),
  });
  work.history = remaining.history;
  return true;
}

function countOf(line: string): number {
  return Number.parseInt(line.slice(COUNT_LINE_PREFIX.length), 10) || 0;
}
