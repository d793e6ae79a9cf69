import { PayhooksError } from "../protocol/errors.ts";
import type { Stopwatch } from "../time/clock.ts";
import type { InboxParts } from "./parts.ts";
import { isUnreadable } from "./record/codec.ts";
import { label } from "./record/index-of.ts";
import { ONLY_TENANT } from "./record/keys.ts";

/** The store is asked how many events are held at most this often, and at most this often whose the newest are. */
const COUNTED_FOR_MS = 1_000;
const LOOKED_FOR_MS = 10_000;
/** How many of the newest held events show who takes the room. */
const NEWEST = 100;

/** What decides whether an event may be held, as far as this process knows. */
export interface HeldRoomLeft {
  readonly held: number;
  /** Half of the room is taken, and more than half of the newest held events are of the event's tenant. */
  readonly isShareTaken: boolean;
}

/**
 * The room for held events. Counting them by tenant would cost every store an index. Since no tenant may fill the room of all, it is
 * enough to look whose the newest are, once half of the room is taken.
 */
export class HeldRoom {
  readonly #parts: InboxParts;
  #counted: { count: number; readonly since: Stopwatch } | null = null;
  /** The tenants of the newest held events, the newest first. */
  #newest: { readonly tenants: string[]; readonly since: Stopwatch } | null = null;
  #looking: Promise<string[]> | null = null;

  constructor(parts: InboxParts) {
    this.#parts = parts;
  }

  /** What is left for an event of this tenant. */
  async of(tenant: string, maxHeld: number): Promise<HeldRoomLeft> {
    const held = await this.#count();
    if (tenant === ONLY_TENANT || held < maxHeld / 2) return { held, isShareTaken: false };
    const tenants = await this.#look();
    const own = label(tenant);
    const ofTenant = tenants.filter((one) => one === own).length;
    return { held, isShareTaken: ofTenant > tenants.length / 2 };
  }

  /** This process has held an event. */
  added(tenant: string): void {
    if (this.#counted !== null) this.#counted.count++;
    if (this.#newest === null) return;
    const { tenants } = this.#newest;
    tenants.unshift(label(tenant));
    if (tenants.length > NEWEST) tenants.pop();
  }

  /** Forgets what is known, since a person has decided about some of them. */
  changed(): void {
    this.#counted = null;
    this.#newest = null;
  }

  async #count(): Promise<number> {
    const { store } = this.#parts;
    const known = this.#counted;
    if (known !== null && store.immediate !== true && known.since.elapsedMs < COUNTED_FOR_MS) {
      return known.count;
    }
    const since = this.#parts.stopwatch();
    const { held } = await store.counts();
    this.#counted = { count: held, since };
    return held;
  }

  async #look(): Promise<readonly string[]> {
    const known = this.#newest;
    if (known !== null && known.since.elapsedMs < LOOKED_FOR_MS) return known.tenants;
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #lookNow(): Promise<string[]> {
    const since = this.#parts.stopwatch();
    const { events } = await this.#parts.store.list({ state: "held" }, null, NEWEST, "newest");
    const tenants = events.flatMap(({ versioned: { record } }) =>
      isUnreadable(record) ? [] : [label(record.tenant)],
    );
    this.#newest = { tenants, since };
    return tenants;
  }
}

/** Throws `ERR_HELD_FULL` if no further event may be held at its acceptance. */
export function checkHeldRoom({ held, isShareTaken }: HeldRoomLeft, maxHeld: number): void {
  if (held >= maxHeld) {
    throw new PayhooksError("ERR_HELD_FULL", `${held} events are held, which is the limit.`, {
      fix: "Look at receiver.held.list(), replay or discard entries, or raise maxHeld.",
    });
  }
  if (!isShareTaken) return;
  throw new PayhooksError(
    "ERR_HELD_FULL",
    `${held} events are held, and most of the newest are of this tenant, which has to leave room for others.`,
    {
      fix: "Look at receiver.held.list({ tenant }), replay or discard entries, or raise maxHeld: one tenant gets half of it.",
    },
  );
}
