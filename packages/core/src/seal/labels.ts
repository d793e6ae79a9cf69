import { createHmac, type KeyObject } from "node:crypto";
import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { EventLabels, RecordIndex } from "../inbox/record/index-of.ts";

/** An id and a reference are looked for in the same lists, so they are hashed alike. */
type LabelKind = "tenant" | "name" | "event" | "status";

const HASH_PREFIX = "sealed:";
/** 128 bits: two texts of one inbox never have the same hash. */
const LABEL_BYTES = 16;
/** How many hashes are remembered. Tenants, events and statuses are few, and an event's id comes several times. */
const MAX_CACHED_HASHES = 4_096;

/** The texts by which events are found, as keyed hashes with one key. */
export class Labels {
  readonly #key: KeyObject;
  #hashes = new Map<string, string>();
  readonly #hashedIndexes = new WeakMap<RecordIndex, RecordIndex>();

  constructor(key: KeyObject) {
    this.#key = key;
  }

  /** An index without any text of an event. States and times stay, because stores count and sort by them. */
  hashIndex(index: RecordIndex): RecordIndex {
    if (index.events.length === 0) return index;
    let hashedIndex = this.#hashedIndexes.get(index);
    if (hashedIndex === undefined) {
      hashedIndex = { ...index, events: index.events.map((labels) => this.#hashEvent(labels)) };
      this.#hashedIndexes.set(index, hashedIndex);
    }
    return hashedIndex;
  }

  hashFilter(filter: EventFilter): EventFilter {
    const { tenant, event, id, referenceId } = filter;
    return {
      ...filter,
      ...(tenant !== undefined && { tenant: this.#hash("tenant", tenant) }),
      ...(event !== undefined && { event: this.#hash("event", event) }),
      ...(id !== undefined && { id: this.#hash("name", id) }),
      ...(referenceId !== undefined && { referenceId: this.#hash("name", referenceId) }),
    };
  }

  #hashEvent(labels: EventLabels): EventLabels {
    const { tenant, id, event, status, referenceId, foundBy } = labels;
    return {
      ...labels,
      tenant: this.#hash("tenant", tenant),
      id: this.#hash("name", id),
      event: this.#hash("event", event),
      status: this.#hash("status", status),
      referenceId: referenceId === null ? null : this.#hash("name", referenceId),
      foundBy: foundBy.map((text) => this.#hash("name", text)),
    };
  }

  #hash(kind: LabelKind, text: string): string {
    const labelledText = `${kind}:${text}`;
    const cachedHash = this.#hashes.get(labelledText);
    if (cachedHash !== undefined) return cachedHash;
    const mac = createHmac("sha256", this.#key).update(labelledText).digest();
    const hash = HASH_PREFIX + mac.toString("base64url", 0, LABEL_BYTES);
    if (this.#hashes.size >= MAX_CACHED_HASHES) this.#hashes = new Map();
    this.#hashes.set(labelledText, hash);
    return hash;
  }
}
