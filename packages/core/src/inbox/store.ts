import type { Loss } from "../notices/notice.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import type { Awaitable } from "../time/awaitable.ts";
import type { EventFilter } from "./events.ts";
import type { Inbox } from "./inbox.ts";
import type { Unreadable } from "./record/codec.ts";
import type { EventSummary, RecordIndex } from "./record/index-of.ts";
import type { IdempotencyRecord } from "./record/record.ts";

/** A record as a store has it. */
export interface Versioned {
  /** Names the write that made it. */
  readonly version: string;
  /** Not to be changed: it may be the store's own. */
  readonly record: IdempotencyRecord | Unreadable;
}

/** One write: the record is replaced if it still has the version that the write was computed from. */
export interface Swap {
  readonly key: string;
  /** The version that it must have; null: there must be no such record, or one that has expired. */
  readonly expected: string | null;
  /** Its version from then on, which no other write has: whoever meets it knows that this very write was made. */
  readonly version: string;
  /** Not to be changed, neither by the store nor by whoever gave it. */
  readonly record: IdempotencyRecord;
  /** What the record is found by from then on. */
  readonly index: RecordIndex;
  /** What it was found by before; null where there was no record. */
  readonly before: RecordIndex | null;
  /** The store's clock when it was computed. Ahead of that clock, or over 5 s behind, it is refused with `current`. */
  readonly at: number;
  /** Other processes are to be told that something is due: a hint, which may get lost. */
  readonly announce: boolean;
}

/** What became of one write. */
export type SwapResult =
  | { readonly kind: "written" }
  /** Nothing was written. `current` is what the store has; null for nothing. */
  | { readonly kind: "conflict"; readonly current: Versioned | null }
  /** Nothing was written, for a reason that may pass: the same write may be made again. */
  | { readonly kind: "not-written"; readonly cause: unknown }
  /** Nothing was written, and nothing will be: the store has no room for it, or does not take its data. */
  | { readonly kind: "refused"; readonly cause: unknown }
  /** It may have been written, or may be yet. */
  | { readonly kind: "unknown"; readonly cause: unknown };

/** A record that somebody has to look at. */
export interface DueRecord extends Versioned {
  readonly key: string;
}

/** What {@link RecordStore.takeDue} found. */
export interface DueRecords {
  /** Oldest first. */
  readonly records: readonly DueRecord[];
  /** How many more are due. Where it is dear to count, any number above 0 stands for some. */
  readonly left: number;
  /**
   * When the next one is due, or comes out of hiding, that is not due yet (the store's clock); null when none waits. While
   * some are left it may be any time, or null.
   */
  readonly nextDueAt: number | null;
}

/** A record as a scan finds it. */
export interface ScannedRecord extends DueRecord {
  /** By event id, the reference that the store's own lists keep of a finished event: its record has it no longer. */
  readonly references: Readonly<Record<string, string>>;
}

/** A page of a scan. */
export interface Scanned {
  readonly records: readonly ScannedRecord[];
  /** Where the next page begins; null behind the last. A page may be empty and yet not the last. */
  readonly next: string | null;
}

/** Where a list goes on: behind the event that was accepted at this time and has this id. */
export interface ListCursor {
  readonly acceptedAt: number;
  readonly eventId: string;
}

/** An event that was found. */
export interface ListedEvent {
  readonly eventId: string;
  readonly acceptedAt: number;
  readonly versioned: Versioned;
  /** What the store knows of it by itself. Left out: what its record says. */
  readonly summary?: EventSummary | undefined;
}

/** Which end of a list comes first, by the time of acceptance and, of the same time, by the id. */
export type ListOrder = "oldest" | "newest";

/** A page of a list. */
export interface Listed {
  readonly events: readonly ListedEvent[];
  /** Where the next page begins; null behind the last. A page may be empty and yet not the last. */
  readonly next: ListCursor | null;
}

/** How much there is of everything that is not finished. */
export interface Counts {
  readonly waiting: number;
  readonly retrying: number;
  readonly running: number;
  readonly held: number;
  readonly heldBy: Readonly<Partial<Record<HeldReason, number>>>;
  /** Since when the record that waits longest has been due (the store's clock), which is no time ahead; null when none is. */
  readonly oldestDueAt: number | null;
}

/**
 * Where records live: a compare-and-swap over several records, and an index of what is due. Everything that is hard is
 * done by the engine above it. Each method may throw or reject, which says nothing about its outcome, and may be called
 * again. What it throws is told by its kind and code only, since it may hold what was given: throw a `PayhooksError` to
 * have its words told.
 */
export interface RecordStore {
  readonly durability: Inbox["durability"];
  /** True where `read` and `swap` have their answers at once: writes need not be gathered then. */
  readonly immediate?: boolean;
  /** Only one process has this store, and its records end with that process. */
  readonly endsWithProcess?: boolean;
  /** Connects, checks, makes what is missing; idempotent. */
  open(): Promise<void>;
  /** Made at random with the data itself: another one tells that the store was emptied or replaced. Known once open. */
  readonly identity: string;
  /**
   * Looks at the data again, within a second or two, and answers how it was lost since it was opened; null when it was not.
   * Each loss is told once. Called every two seconds; rejects while nothing can be said. Left out where nobody but this
   * process has the data.
   */
  findLoss?(): Promise<Loss | null>;
  /** The records with these keys, in their order; null where there is none, or where it has expired. A key may come twice. */
  read(keys: readonly string[]): Awaitable<readonly (Versioned | null)[]>;
  /**
   * Makes each write by itself: the fate of one says nothing about another's. Sorted by key, no key twice. With the
   * record its index is written, in the same atomic step.
   */
  swap(items: readonly Swap[]): Awaitable<readonly SwapResult[]>;
  /**
   * At most `limit` records that are due, the longest waiting first. By the same step nobody else is given them for
   * `hideMs`, or until the next write of the record; their versions stay. One that comes out of hiding has been due since
   * then. With `limit` 0 it only tells how many are due, and when the next one is.
   */
  takeDue(limit: number, hideMs: number): Awaitable<DueRecords>;
  /** The store's clock for this record, as well as it is known here: milliseconds since the epoch. */
  now(key: string): number;
  /** Resolves once replicas have each of these records, at these versions or later; rejects if that is not so in time. */
  settled?(items: readonly { readonly key: string; readonly version: string }[]): Promise<void>;
  /**
   * Calls back when another process announces something due, and is told whether this one has a place for it: where it has
   * none, somebody else may hear of it. A hint: nothing relies on it. Resolves to its end.
   */
  onDue?(wake: () => boolean): Promise<() => void>;
  /**
   * Events that the filter lets pass, by time of acceptance: `limit` at most, behind `cursor` in the order of `first`
   * (default `oldest`). Finished ones only where it asks for the state `done`; a store that does not list them rejects with
   * `ERR_NOT_SEARCHABLE`.
   */
  list(filter: EventFilter, cursor: ListCursor | null, limit: number, first?: ListOrder): Promise<Listed>;
  /**
   * Every record that has not expired, finished or not, in the store's own order: about `limit` of them, behind `cursor`.
   * What is there from the first page to the last is found; it may be found twice. Left out where records end with the
   * process.
   */
  scan?(cursor: string | null, limit: number): Promise<Scanned>;
  /**
   * Events, finished ones too, whose `referenceId` or one of `foundBy` is this text: 1,000 at most, in any order. Left out
   * where only a look at all of them would tell; a store to which this depends on its options rejects with
   * `ERR_NOT_SEARCHABLE`.
   */
  find?(text: string): Promise<readonly ListedEvent[]>;
  /** How many events there are of everything that is not finished, over all processes. */
  counts(): Awaitable<Counts>;
  /** Deletes some of what has expired, in one short step. True when there is more. Left out where records go by themselves. */
  prune?(): Promise<boolean>;
  /**
   * Resolves when an event could be written now, and confirmed as far as the store promises; rejects with the reason why not.
   * It has to try: a store may answer reads, and refuse writes. It leaves nothing behind.
   */
  probe(): Promise<void>;
  /**
   * Where finished records are lost before their time: events that were signed before this time may have been known.
   * A store that keeps all of them has no such method.
   */
  forgottenBefore?(): number;
  /** Lets go of what it holds open, and of what `open` is still opening. Called once, after the last call of everything else. */
  close(): Promise<void>;
}
