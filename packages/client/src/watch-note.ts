import type { ReconcileResult } from "./reconcile.ts";

/** Stands for a payment in the note: a digest, since a reference may be long. */
export type Mark = string;

/** How many payments that were given up and are still open are known. With more, the first of them are given up once more. */
const MAX_GIVEN_UP = 600;

/** The note of one round for the next, in any process. The console shows the times and the counts. */
export interface WatchNote {
  /** When the round began, and when it was over; null while it is not. Milliseconds since the epoch. */
  beganAt: number;
  endedAt: number | null;
  /** When the next round is due. */
  nextAt: number;
  /** How many payments were open, and how many of them were old enough to be looked up. */
  open: number;
  due: number;
  /** How many look-ups had each outcome. */
  counts: Partial<Record<ReconcileResult["outcome"], number>>;
  /**
   * The kind of the last error: it ended the round, or left a payment for the next round, as a failed look-up does.
   * Null if there was none.
   */
  trouble: string | null;
  /** The payment that was looked up last, in a round that was broken off. */
  last: Mark | null;
  /** Those that were given up and are still open. */
  givenUp: readonly Mark[];
}

export function emptyNote(): WatchNote {
  return {
    beganAt: 0,
    endedAt: null,
    nextAt: 0,
    open: 0,
    due: 0,
    counts: {},
    trouble: null,
    last: null,
    givenUp: [],
  };
}

/** Reads a note. An unreadable note counts as none. */
export function noteIn(text: string): WatchNote {
  try {
    const note: Partial<WatchNote> | null = JSON.parse(text);
    const { givenUp, last, nextAt } = note ?? {};
    const marks = Array.isArray(givenUp) ? givenUp.filter((mark) => typeof mark === "string") : [];
    return {
      ...emptyNote(),
      givenUp: marks,
      last: typeof last === "string" ? last : null,
      nextAt: typeof nextAt === "number" ? nextAt : 0,
    };
  } catch {
    return emptyNote();
  }
}

export function textOf(note: WatchNote): string {
  return JSON.stringify(note);
}

/** Notes that a payment was given up. */
export function recordGivenUp(note: WatchNote, mark: Mark): void {
  note.givenUp = [...note.givenUp, mark].slice(-MAX_GIVEN_UP);
}

/** The 64 bits of FNV-1a. Equal marks of two of a merchant's own references are as good as impossible. */
export function markOf({
  reference,
  tenant = "",
}: {
  readonly reference: string;
  readonly tenant?: string | undefined;
}): Mark {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(JSON.stringify([tenant, reference]))) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(36);
}
