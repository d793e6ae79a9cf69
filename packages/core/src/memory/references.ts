import { mayHaveOneMore } from "../inbox/accept/shares.ts";
import type { Versioned } from "../inbox/contract/store.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import { compact, fold, unfold } from "./finished-records.ts";

/** How often to search for expired references at most, because a search looks at all of them. */
const LOOK_EVERY_MS = 60_000;

/** How many references a tenant has. */
interface Share {
  size: number;
}

/**
 * Records without events. They say which payment has a reference. They are never dropped to make room, because a second
 * SUCCESS could run then. A tenant may have as many as there are places left.
 */
export class References {
  readonly #max: number;
  readonly #known = new Map<string, { readonly folded: string; readonly share: Share }>();
  readonly #shares = new Map<string, Share>();
  #nextLookAt = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: string, now: number): Versioned | null {
    return unfold(this.#known.get(key)?.folded, now);
  }

  set(key: string, version: string, record: IdempotencyRecord): void {
    this.delete(key);
    let share = this.#shares.get(record.tenant);
    if (share === undefined) {
      share = { size: 0 };
      this.#shares.set(compact(record.tenant), share);
    }
    share.size++;
    this.#known.set(key, { folded: fold(version, record), share });
  }

  delete(key: string): void {
    const known = this.#known.get(key);
    if (known === undefined) return;
    known.share.size--;
    this.#known.delete(key);
  }

  hasRoomFor(key: string, tenant: string, now: number): boolean {
    if (this.#known.has(key) || this.#hasRoom(tenant)) return true;
    if (now >= this.#nextLookAt) {
      for (const [known, { folded }] of this.#known) if (unfold(folded, now) === null) this.delete(known);
      this.#nextLookAt = now + LOOK_EVERY_MS;
    }
    return this.#hasRoom(tenant);
  }

  #hasRoom(tenant: string): boolean {
    return mayHaveOneMore(tenant, this.#shares.get(tenant)?.size ?? 0, this.#max - this.#known.size);
  }
}
