/**
 * Deletes records that have expired. A clock may be days ahead for a moment: a virtual machine was resumed, or the time service
 * has not answered yet. If one reading of it were believed, everything would be forgotten, and every copy would run again. So the
 * times of looks are kept beside the data, and a record is deleted only if it had expired at a look an hour ago or earlier. If
 * the clock goes back meanwhile, the hour begins anew.
 */
import type { InboxParts } from "./write/parts.ts";

/** How far apart two looks have to be, by the store's clock, before the earlier one counts. */
const LOOKS_APART_MS = 3_600_000;
/** Clocks of several processes are assumed to be no further apart than this. */
const CLOCKS_APART_MS = 5_000;
/** The name of the note. */
const NOTE = "looks";

/** When the store was looked at. */
export interface Looks {
  /** The last look that was kept. */
  readonly last: number;
  /** The one before: what had expired by then may be deleted. */
  readonly before: number;
}

/** The looks to keep after one more. */
export function lookedAt(known: Looks | null, now: number): Looks {
  if (known === null) return { last: now, before: 0 };
  const { last, before } = known;
  if (now < last - CLOCKS_APART_MS) return { last: now, before: Math.min(before, now) };
  return now - last < LOOKS_APART_MS ? known : { last: now, before: last };
}

/** Prunes the store of an inbox. */
export class Pruning {
  readonly #parts: InboxParts;
  /** The looks that this process knows, for a store that keeps no notes. */
  #looks: Looks | null = null;

  constructor(parts: InboxParts) {
    this.#parts = parts;
  }

  /** Deletes some records. True if there are more. */
  async step(): Promise<boolean> {
    const { store } = this.#parts;
    return (await store.prune?.(await this.#look())) === true;
  }

  /** Deletes all records that may be deleted now, unless the inbox closes. */
  async all(): Promise<void> {
    const { store } = this.#parts;
    const before = await this.#look();
    while (!this.#parts.isClosing && (await store.prune?.(before)) === true);
  }

  /** The time of the last look that counts. */
  async #look(): Promise<number> {
    const { store } = this.#parts;
    if (store.prune === undefined) return 0;
    const known = store.readNote === undefined ? this.#looks : looksIn(await store.readNote(NOTE));
    const looks = lookedAt(known, store.now(""));
    if (looks !== known && !this.#parts.isClosing)
      await store.writeNote?.(NOTE, `${looks.last} ${looks.before}`);
    this.#looks = looks;
    return looks.before;
  }
}

function looksIn(note: string | null): Looks | null {
  const [last = Number.NaN, before = Number.NaN] = (note ?? "").split(" ").map(Number);
  return Number.isFinite(last) && Number.isFinite(before) ? { last, before } : null;
}
