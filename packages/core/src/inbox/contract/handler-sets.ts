/**
 * The names of the handlers of all receivers on the same data. An event may run in any of these processes, so a process
 * that lacks a handler gets a notice at its start. There is one notice for each set of handlers. Otherwise a rolling
 * deploy, or two applications that share an inbox, would cause a notice at every start.
 */
import { isDeepStrictEqual } from "node:util";

/** The name of the note that has the sets. */
export const HANDLER_SETS_NOTE = "handlers";
/** How many sets are kept, and how long their text is at most. */
const MAX_SETS = 8;
const MAX_NOTE_CHARS = 16_000;

/** The handlers of one receiver, by names that a person can read, in alphabetical order. */
export type HandlerSet = readonly string[];

/** How a receiver's handlers differ from those of the receiver that started before it. */
export interface HandlersDiff {
  /** Handlers that the other receiver had. */
  readonly missing: HandlerSet;
  /** Handlers that it did not have. */
  readonly added: HandlerSet;
}

/**
 * The sets to keep once a receiver has started, the latest last. Also returns how its set differs from the latest,
 * unless the same set was kept already.
 */
function addHandlerSet(
  knownSets: readonly HandlerSet[],
  ownSet: HandlerSet,
): { readonly sets: readonly HandlerSet[]; readonly change: HandlersDiff | null } {
  const otherSets = knownSets.filter((set) => !isDeepStrictEqual(set, ownSet));
  const sets = [...otherSets, ownSet].slice(-MAX_SETS);
  const latest = knownSets.at(-1);
  if (latest === undefined || otherSets.length < knownSets.length) return { sets, change: null };
  return {
    sets,
    change: {
      missing: latest.filter((name) => !ownSet.includes(name)),
      added: ownSet.filter((name) => !latest.includes(name)),
    },
  };
}

/** The store for small texts beside the data, if there is one. */
interface NoteStore {
  readNote?(name: string): Promise<string | null>;
  writeNote?(name: string, text: string): Promise<void>;
}

/**
 * Keeps the handlers of a receiver beside the data. Returns how they differ from those of the last receiver; null if
 * they do not, or if this set was kept already.
 */
export async function compareHandlers(
  store: NoteStore,
  ownSet: HandlerSet,
  mayWrite: () => boolean,
): Promise<HandlersDiff | null> {
  if (store.readNote === undefined) return null;
  const knownSets = setsIn(await store.readNote(HANDLER_SETS_NOTE));
  const { sets, change } = addHandlerSet(knownSets, ownSet);
  if (!isDeepStrictEqual(sets, knownSets) && mayWrite())
    await store.writeNote?.(HANDLER_SETS_NOTE, encodeSets(sets));
  return change;
}

/** Leaves out the oldest sets if the text would be too long. */
function encodeSets(sets: readonly HandlerSet[]): string {
  const text = JSON.stringify(sets);
  return text.length <= MAX_NOTE_CHARS || sets.length === 0 ? text : encodeSets(sets.slice(1));
}

function setsIn(text: string | null): readonly HandlerSet[] {
  try {
    const sets: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(sets) && sets.every(isHandlerSet) ? sets : [];
  } catch {
    return [];
  }
}

function isHandlerSet(value: unknown): value is HandlerSet {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}
