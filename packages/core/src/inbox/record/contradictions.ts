/**
 * A record keeps a few of the events that contradict it, since anybody with a key can sign any number of them under one id, and each
 * change of a record reads and writes all of it. While they are undecided, further ones are only counted, in the history of the
 * last one. One that has ended makes room: it never runs by itself, so a late copy of it is at most held once more.
 */
import { addHistory, type IdempotencyRecord, isUnfinished, type Slot, type Work } from "./record.ts";

/** How many held events a record keeps, whatever has become of them. With what may run, it has at most two more. */
export const MAX_CONTRADICTIONS = 8;
/** The beginning of the line that counts the others. */
const MORE = "and more: ";
/** They are counted at most this often, since each count is a write. */
const COUNTED_EVERY_MS = 1_000;

/** The last undecided one, if there is no room for a further one. Otherwise there is room by now, and the answer is null. */
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

/** Counts one that is not kept. False if nothing has to be written. */
export function countFurther({ work }: Slot, now: number): boolean {
  const before = work?.history.find(({ what }) => what.startsWith(MORE));
  if (work === null || (before !== undefined && now - before.at < COUNTED_EVERY_MS)) return false;
  const others: Pick<Work, "history"> = { history: work.history.filter((line) => line !== before) };
  addHistory(others, { at: now, what: MORE + (before === undefined ? 1 : countOf(before.what) + 1) });
  work.history = others.history;
  return true;
}

function countOf(what: string): number {
  return Number.parseInt(what.slice(MORE.length), 10) || 0;
}
