import { PayhooksError } from "../../protocol/errors.ts";
import type { Stopwatch } from "../../time/clock.ts";
import type { ListCursor } from "../contract/store.ts";
import { isUnreadable } from "../record/codec.ts";
import { labelOf } from "../record/label.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { mayHaveOneMore } from "./tenant-share.ts";

/** The held events are counted at most this often, and counted by tenant at most this often. */
const HELD_COUNT_TTL_MS = 1_000;
const HELD_OWNERS_TTL_MS = 10_000;
/** While people decide about held events, they are counted anew at most this often. A bulk decides many times a second. */
const DECIDED_COUNT_TTL_MS = 1_000;
/** How many held events are read at once to count them by tenant. */
const PAGE_SIZE = 1_000;

/** The number of held events. */
interface HeldCount {
  /** How many events were held when the store was asked, and how many this process has held since. */
  held: number;
  readonly since: Stopwatch;
  /** Resolves once `held` is known. */
  whenKnown: Promise<void>;
}

/** The owners of held events. */
interface HeldOwners {
  /** How many events were held when the store was asked, and how many this process has held since. */
  held: number;
  readonly byTenant: Map<string, number>;
  readonly since: Stopwatch;
  /** A person has decided about an entry since. */
  isOutdated: boolean;
  /** Resolves once `byTenant` is complete. */
  readonly whenKnown: Promise<void>;
}

/**
 * The quota of held events (`limits.maxHeld`). No store counts them by tenant, because each store would need an index
 * for that. This class reads and counts them, but only once half of the quota is taken: below that, no tenant can have
 * more than its share.
 */
export class HeldQuota {
  readonly #core: InboxCore;
  #heldCount: HeldCount | null = null;
  #owners: HeldOwners | null = null;
  /** Since the counts were last forgotten. */
  #sinceForgotten: Stopwatch | null = null;

  constructor(core: InboxCore) {
    this.#core = core;
  }

  /** Rejects with `ERR_HELD_FULL` if no further event of this tenant may be held at its acceptance. */
  async check(tenant: string, maxHeld: number): Promise<void> {
    const held = await this.#count();
    const free = maxHeld - held;
    if (free <= 0) {
      throw new PayhooksError("ERR_HELD_FULL", `${held} events are held, which is the limit.`, {
        fix: 'Look at receiver.events.list({ state: "held" }), replay or discard entries, or raise limits.maxHeld.',
      });
    }
    if (mayHaveOneMore(tenant, held, free)) return;
    const owners = await this.#ownersOf(held);
    // Other events were held in the meantime, and their tenants are not known. Each counts for every tenant.
    const unknown = Math.max(0, held - owners.held);
    const ownCount = (owners.byTenant.get(labelOf(tenant)) ?? 0) + unknown;
    if (mayHaveOneMore(tenant, ownCount, free)) return;
    throw new PayhooksError(
      "ERR_HELD_FULL",
      `The tenant ${JSON.stringify(labelOf(tenant))} has ${unknown === 0 ? "" : "up to "}${ownCount} held events. A tenant may hold at most as many events as there are free places, and only ${free} are free.`,
      {
        fix: 'Look at receiver.events.list({ state: "held", tenant }), replay or discard entries, or raise limits.maxHeld.',
      },
    );
  }

  /** This process has held an event. */
  countHeld(tenant: string): void {
    if (this.#heldCount !== null) this.#heldCount.held++;
    if (this.#owners === null) return;
    this.#owners.held++;
    addTo(this.#owners, labelOf(tenant));
  }

  /** A person has decided about an entry. Forgets the counts, but not for each decision of a bulk. */
  onDecided(): void {
    if (this.#sinceForgotten !== null && this.#sinceForgotten.elapsedMs < DECIDED_COUNT_TTL_MS) {
      if (this.#owners !== null) this.#owners.isOutdated = true;
      return;
    }
    this.#sinceForgotten = this.#core.stopwatch();
    this.#heldCount = null;
    this.#owners = null;
  }

  /** All callers at one time share one count, unless the store is in this process. */
  async #count(): Promise<number> {
    const { store } = this.#core;
    let heldCount = this.#heldCount;
    if (heldCount === null || store.immediate === true || heldCount.since.elapsedMs >= HELD_COUNT_TTL_MS) {
      heldCount = { held: 0, since: this.#core.stopwatch(), whenKnown: Promise.resolve() };
      heldCount.whenKnown = this.#countInto(heldCount);
      this.#heldCount = heldCount;
    }
    try {
      await heldCount.whenKnown;
    } catch (error) {
      if (this.#heldCount === heldCount) this.#heldCount = null;
      throw error;
    }
    return heldCount.held;
  }

  async #countInto(heldCount: Pick<HeldCount, "held">): Promise<void> {
    const { held } = await this.#core.store.counts();
    heldCount.held = held;
  }

  async #ownersOf(held: number): Promise<HeldOwners> {
    let owners = this.#owners;
    const ttlMs = owners?.isOutdated === true ? DECIDED_COUNT_TTL_MS : HELD_OWNERS_TTL_MS;
    if (owners === null || owners.since.elapsedMs >= ttlMs) {
      const byTenant = new Map<string, number>();
      const since = this.#core.stopwatch();
      owners = { held, byTenant, since, isOutdated: false, whenKnown: this.#readInto({ byTenant }) };
      this.#owners = owners;
    }
    try {
      await owners.whenKnown;
    } catch (error) {
      if (this.#owners === owners) this.#owners = null;
      throw error;
    }
    return owners;
  }

  async #readInto(owners: Pick<HeldOwners, "byTenant">): Promise<void> {
    let cursor: ListCursor | null = null;
    do {
      const { events, next } = await this.#core.store.list({ state: "held" }, cursor, PAGE_SIZE);
      for (const { versioned } of events)
        if (!isUnreadable(versioned.record)) addTo(owners, labelOf(versioned.record.tenant));
      cursor = next;
    } while (cursor !== null);
  }
}

function addTo({ byTenant }: Pick<HeldOwners, "byTenant">, tenant: string): void {
  byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + 1);
}
