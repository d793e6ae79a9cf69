import type { Loss } from "../../notices/notice.ts";
import type { SetupWarning } from "../../notices/setup-warnings.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { Awaitable } from "../../time/awaitable.ts";
import type { UnreadableRecord } from "../record/codec.ts";
import type { EventSummary, RecordIndex } from "../record/index-of.ts";
import type { Lanes } from "../record/lane.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import type { EventFilter } from "./event-query.ts";
import type { Inbox } from "./inbox.ts";

/** A record as the store has it. */
export interface VersionedRecord {
  /** Identifies the write that produced this state of the record. */
  readonly version: string;
  /** Do not change it: it may be the store's own object. */
  readonly record: IdempotencyRecord | UnreadableRecord;
}

/** One write: the record is replaced if it still has the version that the write was computed from. */
export interface Swap {
  readonly key: string;
  /** The version that the stored record must have. Null: there must be no such record, or only one that has expired. */
  readonly expected: string | null;
  /**
   * The version of the record after this write. No other write has the same version, so a process that finds it knows
   * that this write was made.
   */
  readonly version: string;
  /** Neither the store nor its caller may change this object. */
  readonly record: IdempotencyRecord;
  /** The keys by which the record can be found after this write. */
  readonly index: RecordIndex;
  /** The keys by which the record could be found before this write; null if there was none. */
  readonly before: RecordIndex | null;
  /**
   * The store's time when the write was computed. If this is ahead of the store's time now, or more than 5 s behind it, the store
   * refuses the write and answers `conflict`.
   */
  readonly at: number;
  /** Tell other processes that something is due. This is a hint, which may get lost. */
  readonly shouldAnnounce: boolean;
}

/** The result of one write. */
export type SwapResult =
  | { readonly kind: "written" }
  /** Nothing was written. `current` is what the store has; null for nothing. */
  | { readonly kind: "conflict"; readonly current: VersionedRecord | null }
  /** Nothing was written, for a reason that may pass: the same write may be made again. */
  | { readonly kind: "not-written"; readonly cause: unknown }
  /** Nothing was written, and nothing will be: the store has no room for it, or does not take its data. */
  | { readonly kind: "refused"; readonly cause: unknown }
  /** The write may have been made, or may still be made. */
  | { readonly kind: "unknown"; readonly cause: unknown };

/** A record that is due: something in it waits to be run, or its lease has ended. */
export interface DueRecord extends VersionedRecord {
  readonly key: string;
}

/** The records that {@link RecordStore.takeDue} found. */
export interface DueRecords {
  /** Oldest first in each lane. */
  readonly records: readonly DueRecord[];
  /** How many more are due in each lane. If counting is expensive, any number above 0 stands for "some". */
  readonly left: Lanes;
  /**
   * When the next record that is not due now falls due or comes out of hiding (the store's clock). Null when none waits.
   * While more is `left`, it may be any time, or null. After a poll that could take records it is only an estimate: it
   * may be too early, and may miss records that other processes have just taken. A poll that takes nothing knows it
   * exactly.
   */
  readonly nextDueAt: number | null;
}

/** A record that the store must have. If it is gone, the store has lost it. */
export interface KnownRecord {
  readonly key: string;
  /** Its version when it was seen. If the record still has this version, it must be found by the keys of `index`. */
  readonly version: string;
  readonly index: RecordIndex;
}

/** A page of a scan. */
export interface ScanPage {
  readonly records: readonly DueRecord[];
  /** The start of the next page; null if this is the last. A page may be empty without being the last. */
  readonly next: string | null;
}

/** The position at which a list continues: after the event with this id, which was accepted at this time. */
export interface ListCursor {
  readonly acceptedAt: number;
  readonly eventId: string;
}

/** An event that was found. */
export interface ListedEvent {
  readonly eventId: string;
  readonly acceptedAt: number;
  readonly versioned: VersionedRecord;
  /** The event's summary in the store's own lists. If left out, it is computed from the record. */
  readonly summary?: EventSummary | undefined;
}

/** The end of a list that comes first. Events are ordered by their time of acceptance, then by their id. */
export type ListOrder = "oldest" | "newest";

/** A page of a list. */
export interface ListPage {
  readonly events: readonly ListedEvent[];
  /** The start of the next page; null if this is the last. A page may be empty without being the last. */
  readonly next: ListCursor | null;
}

/** How many events are not finished, by state. */
export interface StoreCounts {
  readonly waiting: number;
  readonly retrying: number;
  readonly running: number;
  readonly held: number;
  readonly heldBy: Readonly<Partial<Record<HeldReason, number>>>;
  /** When the longest-waiting due record became due (the store's clock). Never in the future; null when none is due. */
  readonly oldestDueAt: number | null;
}

/**
 * Stores records. A store offers a compare-and-swap of several records and an index of due times. The engine above it
 * does everything difficult.
 *
 * Every method may throw or reject. That says nothing about the outcome, and the engine may call the method again.
 * Notices and logs repeat only the kind and the code of a foreign error, because its message may contain parts of a
 * delivery. Throw a `PayhooksError` if you want its message to be shown.
 */
export interface RecordStore {
  readonly durability: Inbox["durability"];
  /** True if `read` and `swap` answer synchronously. The engine then does not gather writes. */
  readonly immediate?: boolean;
  /** Only one process uses this store, and its records end with that process. */
  readonly endsWithProcess?: boolean;
  /**
   * Only one process uses this store. The process sleeps when nothing happens in it, and the store wakes it by a call
   * of `work` when a record is due. So the inbox does nothing by itself that would keep the process awake: it sends no
   * canaries, and prunes only at its start and in `work`.
   */
  readonly sleeps?: boolean;
  /** Faults in the set-up of the store that do not stop it. Known once the store is open. */
  readonly warnings?: readonly SetupWarning[];
  /** Connects, checks the database, and creates what is missing. Idempotent. */
  open(): Promise<void>;
  /**
   * A random text that was created with the data. A different one shows that the store was emptied or replaced. Known once the
   * store is open.
   */
  readonly datasetId: string;
  /**
   * Checks whether data was lost since the store was opened, and returns how; null if it was not. Takes a second or two at
   * most. Reports each loss once, and rejects if it cannot find out. Called every two seconds. Leave it out if nobody but this
   * process has the data.
   *
   * @param knownRecords some records (32 at most) that were stored and have not expired. If one of them is gone, or can no longer be
   * found by what its index says although its version is the same, the data is `missing`.
   */
  findLoss?(knownRecords: readonly KnownRecord[]): Promise<Loss | null>;
  /** The records with these keys, in this order; null where there is none, or it has expired. A key may come twice. */
  read(keys: readonly string[]): Awaitable<readonly (VersionedRecord | null)[]>;
  /**
   * Makes each write independently: one may fail while another succeeds. The items are sorted by key, and no key comes twice. A
   * record and its index are written in the same atomic step.
   */
  swap(items: readonly Swap[]): Awaitable<readonly SwapResult[]>;
  /**
   * Takes at most as many due records of each lane as `limit` says, the longest waiting first. The same step hides them
   * from every process for `hideMs`, or until their next write. It does not change their versions or their lanes. A
   * record that comes out of hiding counts as due since that moment. With both limits 0, the store only reports how
   * many are due, and when the next record falls due.
   */
  takeDue(limit: Lanes, hideMs: number): Awaitable<DueRecords>;
  /** The store's clock for this record, as exactly as this process knows it, in milliseconds since the epoch. */
  now(key: string): number;
  /**
   * Resolves once the replicas have each of these records, at these versions or later. Rejects if they do not have them in
   * time.
   */
  replicated?(items: readonly { readonly key: string; readonly version: string }[]): Promise<void>;
  /**
   * Calls `wake` when another process announces that a record is due. `wake` returns false if this process has no place
   * for it, so that the store may announce it to another process. This is a hint: nothing relies on it. Resolves to a
   * function that ends the calls.
   */
  onDue?(wake: () => boolean): Promise<() => void>;
  /**
   * Events that match the filter, ordered by their time of acceptance: `limit` at most, after `cursor`, in the order of
   * `first` (default `oldest`). Finished events are listed only if the filter has the state `finished` or `any`. A
   * filter with `any` always has an id or a reference, too. A store that does not list finished events rejects with
   * `ERR_NOT_SEARCHABLE`.
   */
  list(filter: EventFilter, cursor: ListCursor | null, limit: number, first?: ListOrder): Promise<ListPage>;
  /**
   * Every record that has not expired, finished or not, in the store's own order: about `limit` of them, after `cursor`. A
   * record that exists from the first page to the last is found, possibly twice. Leave it out if records end with the process.
   */
  scan?(cursor: string | null, limit: number): Promise<ScanPage>;
  /** How many events are not finished, over all processes. */
  counts(): Awaitable<StoreCounts>;
  /**
   * Deletes some of the records whose `expiresAt` is at or before this time, in one short step. True if there are more.
   * Do not use the store's own clock here: the engine gives a time that it has checked. Leave it out if records expire
   * by themselves.
   */
  prune?(before: number): Promise<boolean>;
  /**
   * Reads a small text that is kept beside the data, and that all processes share; null if there is none. A name has at most 20
   * lowercase letters. Leave it out, with `writeNote`, if records end with the process.
   */
  readNote?(name: string): Promise<string | null>;
  /** Replaces such a text, of at most 16 KB. If two processes do so at the same time, either text may remain. */
  writeNote?(name: string, text: string): Promise<void>;
  /**
   * Keys of canaries, made of this text with {@link canaryKey}: one on each server that has records of its own. Leave it out if
   * all records are on one server.
   */
  canaryKeys?(token: string): Promise<readonly string[]>;
  /**
   * For a store that may drop finished records before they expire: it may no longer know events of this tenant that were
   * signed before this time. Leave it out if the store keeps all of them.
   */
  forgottenBefore?(tenant: string): number;
  /** Closes what the store holds open, and what `open` is still opening. Called once, after every other call. */
  close(): Promise<void>;
}
