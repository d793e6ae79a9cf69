import type { EventFilter } from "../inbox/contract/event-query.ts";
import type {
  DueRecords,
  KnownRecord,
  ListCursor,
  ListedEvent,
  ListOrder,
  ListPage,
  RecordStore,
  Swap,
  SwapResult,
  VersionedRecord,
} from "../inbox/contract/store.ts";
import { isCanary } from "../inbox/record/canary.ts";
import {
  brokenSealRecord,
  decodeRecord,
  encodeRecord,
  isUnreadable,
  lockedRecord,
  type SealedRecord,
  type SealedText,
} from "../inbox/record/codec.ts";
import { recordKeyOf } from "../inbox/record/event.ts";
import { indexOf, type RecordIndex } from "../inbox/record/index-of.ts";
import type { Lanes } from "../inbox/record/lane.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import { matchesFilter } from "../inbox/search/listing.ts";
import type { UndatedNotice } from "../notices/notice.ts";
import type { Environment } from "../time/environment.ts";
import { openText, sealText } from "./cipher.ts";
import type { DerivedKey, SealKeyring } from "./keys.ts";
import { mergePages } from "./pages.ts";

/** How many versions of records are remembered with their keys. For other versions, the store is asked. */
const MAX_CACHED_VERSIONS = 20_000;
/** A record that is stored in the clear. */
const UNSEALED = null;

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
  readonly #keyIdByVersion = new Map<string, string | null>();
  /** Versions whose labels are not indexed yet: `reseal` is between its two writes, or was killed there. */
  readonly #unlistedVersions = new Set<string>();

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
    if (findLoss) this.findLoss = (knownRecords) => findLoss.call(store, this.#hashIndexes(knownRecords));
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
    await this.#keys.ensureRead(this.#environment);
    await this.#store.open();
  }

  now(key: string): number {
    return this.#store.now(key);
  }

  async read(keys: readonly string[]): Promise<readonly (VersionedRecord | null)[]> {
    const records = await this.#store.read(keys);
    const keyedRecords = records.map((versioned, index) => ({ versioned, key: keys[index] ?? "" }));
    await this.#refreshForUnknownKeys(records);
    return keyedRecords.map(({ versioned, key }) => (versioned === null ? null : this.#open(versioned, key)));
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    this.#keys.refresh(this.#environment, this.#notify);
    const unknownKeys = items.filter((item) => this.#isUnknown(item)).map(({ key }) => key);
    if (unknownKeys.length > 0) await this.read(unknownKeys);
    const results = await this.#store.swap(items.map((item) => this.#seal(item)));
    const currents = results.map((result) => (result.kind === "conflict" ? result.current : null));
    await this.#refreshForUnknownKeys(currents);
    return results.map((result, index) => {
      const current = currents[index] ?? null;
      return current === null
        ? result
        : { kind: "conflict", current: this.#open(current, items[index]?.key ?? "") };
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
  ): Promise<ListPage> {
    const { tenant, event, id, referenceId } = filter;
    const isNamed = [tenant, event, id, referenceId].some((text) => text !== undefined);
    const hashed = isNamed ? this.#keys.all.map(({ labels }) => labels.hashFilter(filter)) : [];
    const pages = await Promise.all(
      [filter, ...hashed].map((eachFilter) => this.#store.list(eachFilter, cursor, limit, first)),
    );
    const { events, next } = mergePages(pages, limit, first);
    await this.#refreshForUnknownKeys(events.map(({ versioned }) => versioned));
    const openedEvents = events.map((event) => this.#openEvent(event));
    return { events: openedEvents.filter((event) => mayMatchFilter(filter, event)), next };
  }

  /** Of a sealed record, the store's summary has only hashes. */
  #openEvent({ eventId, acceptedAt, versioned, summary }: ListedEvent): ListedEvent {
    const openedRecord = this.#open(versioned, recordKeyOf(eventId));
    return {
      eventId,
      acceptedAt,
      versioned: openedRecord,
      summary: openedRecord === versioned ? summary : undefined,
    };
  }

  counts(): ReturnType<RecordStore["counts"]> {
    return this.#store.counts();
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #isUnknown({ key, expected }: Swap): boolean {
    return expected !== null && !isCanary(key) && !this.#keyIdByVersion.has(expected);
  }

  /** Seals a write with the key that the record has. A write that is sent again gets the same key as before. */
  #seal(item: Swap): Swap {
    const { key, expected, version, record, index, before } = item;
    if (isCanary(key)) return item;
    const { current } = this.#keys;
    // A version that the store does not have either is a conflict, so its key does not matter.
    const knownVersion = this.#keyIdByVersion.has(version) ? version : (expected ?? "");
    const keyId = this.#keyIdByVersion.has(knownVersion)
      ? (this.#keyIdByVersion.get(knownVersion) ?? UNSEALED)
      : current.id;
    this.#rememberKey(version, keyId);
    if (keyId === UNSEALED) return item;
    const derivedKey = this.#keys.find(keyId) ?? current;
    const isListed = expected === null || !this.#unlistedVersions.has(expected);
    return {
      ...item,
      record: sealRecord(record, key, derivedKey),
      index: derivedKey.labels.hashIndex(index),
      before: before === null ? null : isListed ? derivedKey.labels.hashIndex(before) : withoutLabels(before),
    };
  }

  #hashIndexes(knownRecords: readonly KnownRecord[]): readonly KnownRecord[] {
    return knownRecords.map((knownRecord) => {
      const keyId = this.#keyIdByVersion.get(knownRecord.version) ?? UNSEALED;
      const derivedKey = keyId === UNSEALED ? null : this.#keys.find(keyId);
      if (derivedKey === null) return knownRecord;
      const isListed = !this.#unlistedVersions.has(knownRecord.version);
      return {
        ...knownRecord,
        index: isListed ? derivedKey.labels.hashIndex(knownRecord.index) : withoutLabels(knownRecord.index),
      };
    });
  }

  async #openAll<T extends VersionedRecord>(
    records: readonly T[],
    keyOf: (versioned: T) => string,
  ): Promise<readonly T[]> {
    await this.#refreshForUnknownKeys(records);
    return records.map((versioned) => this.#open(versioned, keyOf(versioned)));
  }

  async #refreshForUnknownKeys(records: readonly (VersionedRecord | null)[]): Promise<void> {
    const isMissing = records.some((versioned) => {
      const sealed =
        versioned !== null && isUnreadable(versioned.record) ? versioned.record.sealed : undefined;
      return sealed !== undefined && this.#keys.find(sealed.keyId) === null;
    });
    if (isMissing) await this.#keys.refreshForUnknownKey(this.#environment, this.#notify);
  }

  #open<T extends VersionedRecord>(versioned: T, key: string): T {
    const { record, version } = versioned;
    if (!isUnreadable(record)) {
      if (!isCanary(key)) this.#rememberKey(version, UNSEALED);
      return versioned;
    }
    const { sealed } = record;
    if (sealed === undefined) return versioned;
    this.#rememberKey(version, sealed.keyId);
    if (sealed.isUnlisted) this.#unlistedVersions.add(version);
    return { ...versioned, record: openRecord(sealed, key, this.#keys) };
  }

  #rememberKey(version: string, keyId: string | null): void {
    this.#keyIdByVersion.set(version, keyId);
    if (this.#keyIdByVersion.size <= MAX_CACHED_VERSIONS) return;
    for (const oldest of this.#keyIdByVersion.keys()) {
      this.#keyIdByVersion.delete(oldest);
      this.#unlistedVersions.delete(oldest);
      return;
    }
  }
}

/** The index of a record whose events are in no list. */
export function withoutLabels(index: RecordIndex): RecordIndex {
  return { ...index, events: [] };
}

/** The record, as the store below gets it. */
export function sealRecord(record: IdempotencyRecord, key: string, derivedKey: DerivedKey): SealedRecord {
  return { ...record, sealed: sealText(encodeRecord(record), key, derivedKey) };
}

/** The record behind a sealed text, or why it cannot be read. */
export function openRecord(sealed: SealedText, key: string, keys: SealKeyring): VersionedRecord["record"] {
  const derivedKey = keys.find(sealed.keyId);
  if (derivedKey === null) return lockedRecord(sealed, "which this process does not have");
  const text = openText(sealed, key, derivedKey);
  return text === null ? brokenSealRecord(sealed) : decodeRecord(text);
}

/** The store has judged the labels of an event. But if it reads them from the record, it cannot, because the record is sealed. */
function mayMatchFilter(filter: EventFilter, { eventId, versioned: { record } }: ListedEvent): boolean {
  if (isUnreadable(record)) return true;
  const labels = indexOf(recordKeyOf(eventId), record).events.find((event) => event.eventId === eventId);
  return labels === undefined || matchesFilter(labels, filter);
}
