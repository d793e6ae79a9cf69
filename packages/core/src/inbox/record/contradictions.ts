/**
 * A record keeps only a few of the events that contradict it. Anybody with a key can sign any number of contradictions
 * under one id, and each change of a record reads and writes the whole record. While those that it keeps are undecided,
 * further contradictions are only counted, in the history of the last. A contradiction that has ended makes room. It
 * never runs by itself, so a late copy of it is at most held once more.
 */
import { addHistory, type IdempotencyRecord, isUnfinished, type OpenWork, type Slot } from "./record.ts";

/**
 * A record keeps this many events that were accepted to be held, including decided ones. Beside these, it has at most
 * two events that were accepted to run.
 */
export const MAX_CONTRADICTIONS = 8;
/** The beginning of the line that counts the others. */
const MORE = "and more: ";
/** They are counted at most this often, because each count is a write. */
const COUNTED_EVERY_MS = 1_000;

/** The last undecided contradiction, if there is no room for a further one. Null if there is room. The call may have made it. */
export function makeRoom({ slots }: IdempotencyRecord): string | null {
  const kept = Object.entries(slots)
    .filter(([, { verdict }]) => verdict !== "run")
    .sort(([, a], [, b]) => a.acceptedAt - b.acceptedAt);
  if (kept.length < MAX_CONTRADICTIONS) return null;
  const [ended] = kept.find(([, slot]) => !isUnfinished(slot)) ?? [];
  if (ended === undefined) return kept.at(-1)?.[0] ?? null;
  delete slots[ended];
  return null;
}

/** Counts a contradiction that is not kept. False if nothing has to be written. */
export function countFurther({ work }: Slot, now: number): boolean {
  const before = work?.history.find(({ what }) => what.startsWith(MORE));
  if (work === null || (before !== undefined && now - before.at < COUNTED_EVERY_MS)) return false;
  const others: Pick<OpenWork, "history"> = { history: work.history.filter((line) => line !== before) };
  addHistory(others, { at: now, what: MORE + (before === undefined ? 1 : countOf(before.what) + 1) });
  work.history = others.history;
  return true;
}

function countOf(what: string): number {
  return Number.parseInt(what.slice(MORE.length), 10) || 0;
}
