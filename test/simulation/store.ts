/**
 * The simulated store: a record store in a map, as its interface describes one and without any fault. The faults on the way
 * to it are in `store-link.ts`. Beside its interface it can lose writes, as a database does in a failover.
 */
import type { HeldReason } from "@payhooks/core";
import {
  type DueRecords,
  decodeRecord,
  type EventFilter,
  type EventLabels,
  encodeRecord,
  type IdempotencyRecord,
  type Lanes,
  type ListOrder,
  type ListPage,
  type RecordIndex,
  type RecordStore,
  type StoreCounts,
  type Swap,
  type SwapResult,
  type VersionedRecord,
} from "@payhooks/core/inbox";
import { LANES } from "../../packages/core/src/inbox/record/lane.ts";

/** The form of a stored record: a text, as in a database, or the object itself, which is quicker. */
type Kept = string | IdempotencyRecord;

/** A stored record. It is never changed: a write puts another record in its place. */
export interface Row {
  readonly key: string;
  readonly version: string;
  readonly kept: Kept;
  readonly index: RecordIndex;
  /** When it may be taken: when it is due, or when it comes out of hiding. */
  readonly dueAt: number;
  /** How far away that was when it was written. */
  readonly dueInMs: number;
}

/** The record that a write, or a look, has replaced. */
interface Replaced {
  readonly key: string;
  readonly before: Row | undefined;
}

export interface SimulatedStoreOptions {
  /** The store's clock. */
  readonly now: () => number;
  /** Records are kept as text, as a database has them. Default true. */
  readonly keepsTexts?: boolean;
  /** Names the data. */
  readonly datasetId?: string;
  /** For how long a record that is written counts as due at most, in milliseconds. Default: for as long as it says. */
  readonly dueWithinMs?: number;
}

/** A write that was computed longer ago has to be computed again. */
const OUTDATED_MS = 5_000;
/** A due time that is further away than when it was written, by more than this, comes from a wrong clock. */
const CLOCKS_APART_MS = 5_000;

const WRITTEN: SwapResult = { kind: "written" };

export class SimulatedStore implements RecordStore {
  readonly durability = "host";
  datasetId: string;
  readonly #now: () => number;
  readonly #keepsTexts: boolean;
  readonly #dueWithinMs: number;
  #rows = new Map<string, Row>();
  readonly #notes = new Map<string, string>();
  #replaced: Replaced[] = [];

  constructor({
    now,
    keepsTexts = true,
    datasetId = "simulated",
    dueWithinMs = Number.POSITIVE_INFINITY,
  }: SimulatedStoreOptions) {
    this.#now = now;
    this.#dueWithinMs = dueWithinMs;
    this.#keepsTexts = keepsTexts;
    this.datasetId = datasetId;
  }

  async open(): Promise<void> {}
  async close(): Promise<void> {}

  now(): number {
    return this.#now();
  }

  read(keys: readonly string[]): readonly (VersionedRecord | null)[] {
    return keys.map((key) => {
      const row = this.#find(key);
      return row && versioned(row);
    });
  }

  swap(items: readonly Swap[]): readonly SwapResult[] {
    return items.map((item) => this.#write(item));
  }

  #write({ key, expected, version, record, index, at }: Swap): SwapResult {
    const now = this.#now();
    const row = this.#find(key);
    const isComputedNow = at <= now && at >= now - OUTDATED_MS;
    if (!isComputedNow || (row?.version ?? null) !== expected) {
      return { kind: "conflict", current: row && versioned(row) };
    }
    const kept = this.#keepsTexts ? encodeRecord(record) : record;
    this.#put({
      key,
      version,
      kept,
      index,
      dueAt: index.dueAt === null ? Number.POSITIVE_INFINITY : Math.max(index.dueAt, now - this.#dueWithinMs),
      dueInMs: index.originalDelayMs,
    });
    return WRITTEN;
  }

  #put(row: Row): void {
    this.#replaced.push({ key: row.key, before: this.#rows.get(row.key) });
    this.#rows.set(row.key, row);
  }

  #find(key: string): Row | null {
    const row = this.#rows.get(key);
    return row === undefined || this.#isExpired(row) ? null : row;
  }

  #isExpired({ index }: Row): boolean {
    return index.expiresAt !== null && index.expiresAt <= this.#now();
  }

  #isDue({ dueAt, dueInMs }: Row): boolean {
    const now = this.#now();
    return dueAt <= now || (Number.isFinite(dueAt) && dueAt - now > dueInMs + CLOCKS_APART_MS);
  }

  takeDue(limit: Lanes, hideMs: number): DueRecords {
    const now = this.#now();
    const due: Lanes<Row[]> = { usual: [], patient: [] };
    let nextDueAt: number | null = null;
    for (const row of this.#rows.values()) {
      if (this.#isDue(row)) due[row.index.lane].push(row);
      else if (row.dueAt < (nextDueAt ?? Number.POSITIVE_INFINITY)) nextDueAt = row.dueAt;
    }
    const taken = LANES.flatMap((lane) => due[lane].sort((a, b) => a.dueAt - b.dueAt).splice(0, limit[lane]));
    const hiddenMs = Math.max(1, hideMs);
    for (const row of taken) {
      this.#put({ ...row, dueAt: now + hiddenMs, dueInMs: hiddenMs });
      nextDueAt = Math.min(nextDueAt ?? Number.POSITIVE_INFINITY, now + hiddenMs);
    }
    return {
      records: taken.map((row) => ({ key: row.key, ...versioned(row) })),
      left: { usual: due.usual.length, patient: due.patient.length },
      nextDueAt,
    };
  }

  async list(
    filter: EventFilter,
    cursor: Parameters<RecordStore["list"]>[1],
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<ListPage> {
    const after = cursor === null ? null : place(cursor);
    const isBefore = (a: string, b: string): boolean => (first === "oldest" ? a < b : a > b);
    const found: (ListPage["events"][number] & { readonly at: string })[] = [];
    for (const row of this.#rows.values()) {
      if (this.#isExpired(row)) continue;
      for (const labels of row.index.events) {
        const at = place(labels);
        if (!passes(labels, filter) || (after !== null && !isBefore(after, at))) continue;
        const { eventId, acceptedAt } = labels;
        found.push({ eventId, acceptedAt, versioned: versioned(row), at });
      }
    }
    found.sort((a, b) => (isBefore(a.at, b.at) ? -1 : 1));
    const events = found.slice(0, limit).map(({ at: _, ...event }) => event);
    return { events, next: found.length > limit ? (events.at(-1) ?? null) : null };
  }

  counts(): StoreCounts {
    const counts = { waiting: 0, retrying: 0, running: 0, held: 0, finished: 0 };
    const heldBy: Partial<Record<HeldReason, number>> = {};
    let oldestDueAt: number | null = null;
    for (const row of this.#rows.values()) {
      for (const { state, reason } of row.index.events) {
        counts[state]++;
        if (reason !== null) heldBy[reason] = (heldBy[reason] ?? 0) + 1;
      }
      if (this.#isDue(row)) oldestDueAt = Math.min(oldestDueAt ?? this.#now(), row.dueAt);
    }
    const { waiting, retrying, running, held } = counts;
    return { waiting, retrying, running, held, heldBy, oldestDueAt };
  }

  async prune(before: number): Promise<boolean> {
    for (const { key, index } of this.#rows.values()) {
      if (index.expiresAt !== null && index.expiresAt <= before) this.#rows.delete(key);
    }
    return false;
  }

  async readNote(name: string): Promise<string | null> {
    return this.#notes.get(name) ?? null;
  }

  async writeNote(name: string, text: string): Promise<void> {
    this.#notes.set(name, text);
  }

  /** All stored records. */
  rows(): IterableIterator<Row> {
    return this.#rows.values();
  }

  /** The number of writes so far, to which {@link loseSince} can go back. */
  get mark(): number {
    return this.#replaced.length;
  }

  /** Takes back all writes since then. Returns the keys of the records that have changed by that. */
  loseSince(mark: number): readonly string[] {
    const lost = new Map<string, string>();
    for (const { key, before } of this.#replaced.splice(mark).reverse()) {
      if (!lost.has(key)) lost.set(key, this.#rows.get(key)?.version ?? "");
      if (before === undefined) this.#rows.delete(key);
      else this.#rows.set(key, before);
    }
    return [...lost].filter(([key, version]) => this.#rows.get(key)?.version !== version).map(([key]) => key);
  }

  /** True if the record has, or had before, this version. A lost version does not count. */
  knows(key: string, version: string): boolean {
    return (
      this.#rows.get(key)?.version === version ||
      this.#replaced.some(({ key: other, before }) => other === key && before?.version === version)
    );
  }

  /** Loses everything, and is another store from then on. */
  loseAll(datasetId: string): readonly string[] {
    const keys = [...this.#rows.keys()];
    this.#rows = new Map();
    this.#replaced = [];
    this.datasetId = datasetId;
    return keys;
  }
}

function versioned({ version, kept }: Row): VersionedRecord {
  return { version, record: typeof kept === "string" ? decodeRecord(kept) : kept };
}

/** Events sort by the time of their acceptance, then by their id. */
function place({ acceptedAt, eventId }: { readonly acceptedAt: number; readonly eventId: string }): string {
  return `${String(acceptedAt).padStart(16, "0")} ${eventId}`;
}

function passes(
  event: EventLabels,
  { since = 0, until = Number.POSITIVE_INFINITY, state, ...labels }: EventFilter,
): boolean {
  const fits = Object.entries(labels).every(([name, label]) => {
    const isNamed = (name === "id" || name === "referenceId") && event.foundBy.includes(label ?? "");
    return label === undefined || isNamed || event[name as keyof typeof labels] === label;
  });
  return (
    fits &&
    (state === undefined ? event.state !== "finished" : state === "any" || event.state === state) &&
    event.acceptedAt >= since &&
    event.acceptedAt < until
  );
}
