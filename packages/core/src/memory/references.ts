import { mayHaveOneMore } from "../inbox/accept/tenant-share.ts";
import type { VersionedRecord } from "../inbox/contract/store.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import { compact, fold, unfold } from "./finished-records.ts";

/** How often to search for expired references at most, because a search looks at all of them. */
const SEARCH_INTERVAL_MS = 60_000;

/** How many references a tenant has. A tenant without references has no share. */
interface TenantShare {
  readonly tenant: string;
  size: number;
}

/**
 * Records without events. They say which payment has a reference. They are never dropped to make room, because a second
 * SUCCESS could run then. A tenant may have as many as there are places left.
 */
export class References {
  readonly #maxReferences: number;
  readonly #references = new Map<string, { readonly folded: string; readonly share: TenantShare }>();
  readonly #shares = new Map<string, TenantShare>();
  #nextSearchAt = Number.NEGATIVE_INFINITY;

  constructor(maxReferences: number) {
    this.#maxReferences = maxReferences;
  }

  get(key: string, now: number): VersionedRecord | null {
    return unfold(this.#references.get(key)?.folded, now);
  }

  set(key: string, version: string, record: IdempotencyRecord): void {
    this.delete(key);
    let share = this.#shares.get(record.tenant);
    if (share === undefined) {
      share = { tenant: compact(record.tenant), size: 0 };
      this.#shares.set(share.tenant, share);
    }
    share.size++;
    this.#references.set(key, { folded: fold(version, record), share });
  }

  delete(key: string): void {
    const reference = this.#references.get(key);
    if (reference === undefined) return;
    this.#references.delete(key);
    const { share } = reference;
    if (--share.size === 0) this.#shares.delete(share.tenant);
  }

  hasRoomFor(key: string, tenant: string, now: number): boolean {
    if (this.#references.has(key) || this.#hasRoom(tenant)) return true;
    if (now >= this.#nextSearchAt) {
      for (const [knownKey, { folded }] of this.#references)
        if (unfold(folded, now) === null) this.delete(knownKey);
      this.#nextSearchAt = now + SEARCH_INTERVAL_MS;
    }
    return this.#hasRoom(tenant);
  }

  #hasRoom(tenant: string): boolean {
    return mayHaveOneMore(
      tenant,
      this.#shares.get(tenant)?.size ?? 0,
      this.#maxReferences - this.#references.size,
    );
  }
}
