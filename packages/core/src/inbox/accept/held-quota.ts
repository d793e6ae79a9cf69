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

/** How many events are held. */
interface HeldCount {
  /** How many events were held when the store was asked, and how many this process has held since. */
  held: number;
}

/** The owners of held events. */
interface HeldOwners extends HeldCount {
  readonly byTenant: Map<string, number>;
  /** A person has decided about an entry since. */
  isOutdated: boolean;
}

/**
 * Facts that the store is asked for. All callers at one time share one question, and the answer counts for a while. Meanwhile, the
 * facts may be changed in place.
 */
class SharedFacts<Facts> {
  readonly #startStopwatch: () => Stopwatch;
  #asked: { readonly facts: Facts; readonly since: Stopwatch; readonly whenKnown: Promise<void> } | null =
    null;

  constructor(startStopwatch: () => Stopwatch) {
    this.#startStopwatch = startStopwatch;
  }

  /** The facts as far as they are known; null if the store was not asked. */
  get current(): Facts | null {
    return this.#asked?.facts ?? null;
  }

  forget(): void {
    this.#asked = null;
  }

  /** The facts, once they are known. If the last question is `ttlMs` old, `fill` asks again and fills in `emptyFacts`. */
  async get(ttlMs: number, emptyFacts: Facts, fill: (facts: Facts) => Promise<void>): Promise<Facts> {
    let asked = this.#asked;
    if (asked === null || asked.since.elapsedMs >= ttlMs) {
      const since = this.#startStopwatch();
      asked = { facts: emptyFacts, since, whenKnown: fill(emptyFacts) };
      this.#asked = asked;
    }
    try {
      await asked.whenKnown;
    } catch (error) {
      if (this.#asked === asked) this.#asked = null;
      throw error;
    }
    return asked.facts;
  }
}

/**
 * The quota of held events (`limits.maxHeld`). No store counts them by tenant, because each store would need an index
 * for that. This class reads and counts them, but only once half of the quota is taken: below that, no tenant can have
 * more than its share.
 */
export class HeldQuota {
  readonly #core: InboxCore;
  readonly #heldCount: SharedFacts<HeldCount>;
  readonly #owners: SharedFacts<HeldOwners>;
  /** Since the counts were last forgotten. */
  #sinceForgotten: Stopwatch | null = null;

  constructor(core: InboxCore) {
    this.#core = core;
    this.#heldCount = new SharedFacts(() => core.stopwatch());
    this.#owners = new SharedFacts(() => core.stopwatch());
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
    const [heldCount, owners] = [this.#heldCount.current, this.#owners.current];
    if (heldCount !== null) heldCount.held++;
    if (owners === null) return;
    owners.held++;
    addTo(owners, labelOf(tenant));
  }

  /** A person has decided about an entry. Forgets the counts, but not for each decision of a bulk. */
  onDecided(): void {
    if (this.#sinceForgotten !== null && this.#sinceForgotten.elapsedMs < DECIDED_COUNT_TTL_MS) {
      const owners = this.#owners.current;
      if (owners !== null) owners.isOutdated = true;
      return;
    }
    this.#sinceForgotten = this.#core.stopwatch();
    this.#heldCount.forget();
    this.#owners.forget();
  }

  /** A store in this process is asked each time. */
  async #count(): Promise<number> {
    const { store } = this.#core;
    const ttlMs = store.immediate === true ? 0 : HELD_COUNT_TTL_MS;
    const { held } = await this.#heldCount.get(ttlMs, { held: 0 }, async (heldCount) => {
      heldCount.held = (await store.counts()).held;
    });
    return held;
  }

  #ownersOf(held: number): Promise<HeldOwners> {
    const ttlMs = this.#owners.current?.isOutdated === true ? DECIDED_COUNT_TTL_MS : HELD_OWNERS_TTL_MS;
    const emptyOwners = { held, byTenant: new Map<string, number>(), isOutdated: false };
    return this.#owners.get(ttlMs, emptyOwners, (owners) => this.#readInto(owners));
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
