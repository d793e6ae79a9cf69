import { createHmac, type KeyObject } from "node:crypto";
import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { EventLabels, RecordIndex } from "../inbox/record/index-of.ts";

/** An id and a reference are looked for in the same lists, so they are hashed alike. */
type Kind = "tenant" | "name" | "event" | "status";

const SIGN = "sealed:";
/** 128 bits: two texts of one inbox never have the same hash. */
const LABEL_BYTES = 16;
/** How many hashes are remembered. Tenants, events and statuses are few, and an event's id comes several times. */
const REMEMBERED = 4_096;

/** The texts by which events are found, as keyed hashes with one key. */
export class Labels {
  readonly #key: KeyObject;
  #cache = new Map<string, string>();
  readonly #indexes = new WeakMap<RecordIndex, RecordIndex>();

  constructor(key: KeyObject) {
    this.#key = key;
  }

  /** An index without any text of an event. States and times stay, because stores count and sort by them. */
  index(index: RecordIndex): RecordIndex {
    if (index.events.length === 0) return index;
    let hashed = this.#indexes.get(index);
    if (hashed === undefined) {
      hashed = { ...index, events: index.events.map((labels) => this.#event(labels)) };
      this.#indexes.set(index, hashed);
    }
    return hashed;
  }

  filter(filter: EventFilter): EventFilter {
    const { tenant, event, id, referenceId } = filter;
    return {
      ...filter,
      ...(tenant !== undefined && { tenant: this.#hash("tenant", tenant) }),
      ...(event !== undefined && { event: this.#hash("event", event) }),
      ...(id !== undefined && { id: this.#hash("name", id) }),
      ...(referenceId !== undefined && { referenceId: this.#hash("name", referenceId) }),
    };
  }

  #event(labels: EventLabels): EventLabels {
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

  #hash(kind: Kind, text: string): string {
    const named = `${kind}:${text}`;
    const known = this.#cache.get(named);
    if (known !== undefined) return known;
    const mac = createHmac("sha256", this.#key).update(named).digest();
    const hash = SIGN + mac.toString("base64url", 0, LABEL_BYTES);
    if (this.#cache.size >= REMEMBERED) this.#cache = new Map();
    this.#cache.set(named, hash);
    return hash;
  }
}
