import type { EventFilter } from "../inbox/contract/event-query.ts";
import type {
  DueRecords,
  KnownRecord,
  ListCursor,
  Listed,
  ListedEvent,
  ListOrder,
  RecordStore,
  Swap,
  SwapResult,
  Versioned,
} from "../inbox/contract/store.ts";
import { isCanary } from "../inbox/record/canary.ts";
import {
  damagedSeal,
  decodeRecord,
  encodeRecord,
  isUnreadable,
  lockedBy,
  type SealedRecord,
  type SealedText,
} from "../inbox/record/codec.ts";
import { recordKeyOf } from "../inbox/record/event.ts";
import { indexOf, type RecordIndex } from "../inbox/record/index-of.ts";
import type { Lanes } from "../inbox/record/lane.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import { matches } from "../inbox/search/listing.ts";
import type { UndatedNotice } from "../notices/notice.ts";
import type { Environment } from "../time/environment.ts";
import { openText, sealText } from "./cipher.ts";
import type { DerivedKey, SealKeyring } from "./keys.ts";
import { mergePages } from "./pages.ts";

/** How many versions of records are remembered with their keys. For other versions, the store is asked. */
const REMEMBERED = 20_000;
/** A record that is stored in the clear. */
const PLAIN = null;

/**
 * A store whose records are sealed. The store below gets texts that it cannot read and labels that are keyed hashes,
 * and needs no key.
 *
 * A record keeps the key with which it was first stored, until it is sealed anew (`reseal.ts`). A record that was
 * stored in the clear stays so until then. So the labels of a record and its text always have the same key, and a write
 * changes no label.
 */
export class SealedStore implements RecordStore {
  readonly durability: RecordStore["durability"];
  readonly sleeps: boolean;
  readonly replicated?: NonNullable<RecordStore["replicated"]>;
  readonly findLoss?: NonNullable<RecordStore["findLoss"]>;
  readonly onDue?: NonNullable<RecordStore["onDue"]>;
  readonly scan?: NonNullable<RecordStore["scan"]>;
  readonly prune?: NonNullable<RecordStore["prune"]>;
  readonly readNote?: NonNullable<RecordStore["readNote"]>;
  readonly writeNote?: NonNullable<RecordStore["writeNote"]>;
  readonly canaryKeys?: NonNullable<RecordStore["canaryKeys"]>;
  readonly #store: RecordStore;
  readonly #keys: SealKeyring;
  readonly #environment: Environment;
  readonly #notify: (notice: UndatedNotice) => void;
  /** The key of each version that this process has read or written; null if it is stored in the clear. */
  readonly #keyOf = new Map<string, string | null>();
  /** Those of these versions whose labels are in no list: `reseal` is between its two writes, or was killed there. */
  readonly #unlisted = new Set<string>();

  constructor(
    store: RecordStore,
    keys: SealKeyring,
    environment: Environment,
    notify: (notice: UndatedNotice) => void,
  ) {
    this.#store = store;
    this.#keys = keys;
    this.#environment = environment;
    this.#notify = notify;
    this.durability = store.durability;
    this.sleeps = store.sleeps === true;
    const { replicated, findLoss, onDue, scan, prune, readNote, writeNote, canaryKeys } = store;
    if (replicated) this.replicated = replicated.bind(store);
    if (findLoss) this.findLoss = (known) => findLoss.call(store, this.#hashed(known));
    if (onDue) this.onDue = onDue.bind(store);
    if (prune) this.prune = prune.bind(store);
    if (readNote) this.readNote = readNote.bind(store);
    if (writeNote) this.writeNote = writeNote.bind(store);
    if (canaryKeys) this.canaryKeys = canaryKeys.bind(store);
    if (scan) {
      this.scan = async (cursor, limit) => {
        const { records, next } = await scan.call(store, cursor, limit);
        return { records: await this.#openAll(records, ({ key }) => key), next };
      };
    }
  }

  get datasetId(): string {
    return this.#store.datasetId;
  }

  get warnings(): NonNullable<RecordStore["warnings"]> {
    return this.#store.warnings ?? [];
  }

  async open(): Promise<void> {
    await this.#keys.ready(this.#environment);
    await this.#store.open();
  }

  now(key: string): number {
    return this.#store.now(key);
  }

  async read(keys: readonly string[]): Promise<readonly (Versioned | null)[]> {
    const found = await this.#store.read(keys);
    const keyed = found.map((versioned, at) => ({ versioned, key: keys[at] ?? "" }));
    await this.#seekKeys(found);
    return keyed.map(({ versioned, key }) => (versioned === null ? null : this.#open(versioned, key)));
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    this.#keys.refresh(this.#environment, this.#notify);
    const unknown = items.filter((item) => this.#isUnknown(item)).map(({ key }) => key);
    if (unknown.length > 0) await this.read(unknown);
    const results = await this.#store.swap(items.map((item) => this.#seal(item)));
    const currents = results.map((result) => (result.kind === "conflict" ? result.current : null));
    await this.#seekKeys(currents);
    return results.map((result, at) => {
      const current = currents[at] ?? null;
      return current === null
        ? result
        : { kind: "conflict", current: this.#open(current, items[at]?.key ?? "") };
    });
  }

  async takeDue(limit: Lanes, hideMs: number): Promise<DueRecords> {
    const due = await this.#store.takeDue(limit, hideMs);
    return { ...due, records: await this.#openAll(due.records, ({ key }) => key) };
  }

  /**
   * The texts of the filter may have been hashed with any of the keys, or be stored in the clear. So all forms are searched for.
   */
  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<Listed> {
    const { tenant, event, id, referenceId } = filter;
    const isNamed = [tenant, event, id, referenceId].some((text) => text !== undefined);
    const hashed = isNamed ? this.#keys.all.map(({ labels }) => labels.filter(filter)) : [];
    const pages = await Promise.all(
      [filter, ...hashed].map((one) => this.#store.list(one, cursor, limit, first)),
    );
    const { events, next } = mergePages(pages, limit, first);
    await this.#seekKeys(events.map(({ versioned }) => versioned));
    const opened = events.map((event) => this.#openEvent(event));
    return { events: opened.filter((event) => passes(filter, event)), next };
  }

  /** Of a sealed record, the store's summary has only hashes. */
  #openEvent({ eventId, acceptedAt, versioned, summary }: ListedEvent): ListedEvent {
    const opened = this.#open(versioned, recordKeyOf(eventId));
    return { eventId, acceptedAt, versioned: opened, summary: opened === versioned ? summary : undefined };
  }

  counts(): ReturnType<RecordStore["counts"]> {
    return this.#store.counts();
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #isUnknown({ key, expected }: Swap): boolean {
    return expected !== null && !isCanary(key) && !this.#keyOf.has(expected);
  }

  /** The same write, sealed with the key that the record has. A write that is sent again gets the same key as before. */
  #seal(item: Swap): Swap {
    const { key, expected, version, record, index, before } = item;
    if (isCanary(key)) return item;
    const { current } = this.#keys;
    // A version that the store does not have either is a conflict, so its key does not matter.
    const known = this.#keyOf.has(version) ? version : (expected ?? "");
    const keyId = this.#keyOf.has(known) ? (this.#keyOf.get(known) ?? PLAIN) : current.id;
    this.#remember(version, keyId);
    if (keyId === PLAIN) return item;
    const derived = this.#keys.find(keyId) ?? current;
    const isListed = expected === null || !this.#unlisted.has(expected);
    return {
      ...item,
      record: sealRecord(record, key, derived),
      index: derived.labels.index(index),
      before: before === null ? null : isListed ? derived.labels.index(before) : withoutLabels(before),
    };
  }

  #hashed(known: readonly KnownRecord[]): readonly KnownRecord[] {
    return known.map((one) => {
      const keyId = this.#keyOf.get(one.version) ?? PLAIN;
      const derived = keyId === PLAIN ? null : this.#keys.find(keyId);
      if (derived === null) return one;
      const isListed = !this.#unlisted.has(one.version);
      return { ...one, index: isListed ? derived.labels.index(one.index) : withoutLabels(one.index) };
    });
  }

  async #openAll<T extends Versioned>(found: readonly T[], keyOf: (one: T) => string): Promise<readonly T[]> {
    await this.#seekKeys(found);
    return found.map((one) => this.#open(one, keyOf(one)));
  }

  async #seekKeys(found: readonly (Versioned | null)[]): Promise<void> {
    const isMissing = found.some((one) => {
      const sealed = one !== null && isUnreadable(one.record) ? one.record.sealed : undefined;
      return sealed !== undefined && this.#keys.find(sealed.keyId) === null;
    });
    if (isMissing) await this.#keys.seek(this.#environment, this.#notify);
  }

  #open<T extends Versioned>(found: T, key: string): T {
    const { record, version } = found;
    if (!isUnreadable(record)) {
      if (!isCanary(key)) this.#remember(version, PLAIN);
      return found;
    }
    const { sealed } = record;
    if (sealed === undefined) return found;
    this.#remember(version, sealed.keyId);
    if (sealed.isUnlisted) this.#unlisted.add(version);
    return { ...found, record: openRecord(sealed, key, this.#keys) };
  }

  #remember(version: string, keyId: string | null): void {
    this.#keyOf.set(version, keyId);
    if (this.#keyOf.size <= REMEMBERED) return;
    for (const oldest of this.#keyOf.keys()) {
      this.#keyOf.delete(oldest);
      this.#unlisted.delete(oldest);
      return;
    }
  }
}

/** The index of a record whose events are in no list. */
export function withoutLabels(index: RecordIndex): RecordIndex {
  return { ...index, events: [] };
}

/** The record, as the store below gets it. */
export function sealRecord(record: IdempotencyRecord, key: string, derived: DerivedKey): SealedRecord {
  return { ...record, sealed: sealText(encodeRecord(record), key, derived) };
}

/** The record behind a sealed text, or why it cannot be read. */
export function openRecord(sealed: SealedText, key: string, keys: SealKeyring): Versioned["record"] {
  const derived = keys.find(sealed.keyId);
  if (derived === null) return lockedBy(sealed, "which this process does not have");
  const text = openText(sealed, key, derived);
  return text === null ? damagedSeal(sealed) : decodeRecord(text);
}

/** The store has judged the labels of an event. But if it reads them from the record, it cannot, because the record is sealed. */
function passes(filter: EventFilter, { eventId, versioned: { record } }: ListedEvent): boolean {
  if (isUnreadable(record)) return true;
  const found = indexOf(recordKeyOf(eventId), record).events.find((event) => event.eventId === eventId);
  return found === undefined || matches(found, filter);
}
