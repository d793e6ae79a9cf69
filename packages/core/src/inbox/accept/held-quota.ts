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
/** How many held events are read at once to count them by tenant. */
const PAGE_SIZE = 1_000;

/** The owners of held events. */
interface HeldOwners {
  /** How many events were held when the store was asked, and how many this process has held since. */
  held: number;
  readonly byTenant: Map<string, number>;
  readonly since: Stopwatch;
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
  #heldCount: { held: number; readonly since: Stopwatch } | null = null;
  #owners: HeldOwners | null = null;

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

  /** Forgets the counts, because a person has decided about an entry. */
  forgetCounts(): void {
    this.#heldCount = null;
    this.#owners = null;
  }

  async #count(): Promise<number> {
    const { store } = this.#core;
    const lastCount = this.#heldCount;
    if (lastCount !== null && store.immediate !== true && lastCount.since.elapsedMs < HELD_COUNT_TTL_MS) {
      return lastCount.held;
    }
    const since = this.#core.stopwatch();
    const { held } = await store.counts();
    this.#heldCount = { held, since };
    return held;
  }

  async #ownersOf(held: number): Promise<HeldOwners> {
    let owners = this.#owners;
    if (owners === null || owners.since.elapsedMs >= HELD_OWNERS_TTL_MS) {
      const byTenant = new Map<string, number>();
      owners = { held, byTenant, since: this.#core.stopwatch(), whenKnown: this.#readInto({ byTenant }) };
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
