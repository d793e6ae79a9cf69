/** One record without a store around it, and a clock that is set by hand. */
import type { Accepted, Begun, Ending, Job, Life, VerifiedEvent } from "../src/inbox/inbox.ts";
import type { IdempotencyRecord, Slot } from "../src/inbox/record.ts";
import { accept, begin, finish, lifeOf } from "../src/inbox/steps.ts";
import type { BeginOptions } from "../src/inbox/store.ts";

export const DAY: number = 86_400_000;
export const KEY: string = "a".repeat(32);
export const PENDING: string = "0".repeat(16);
export const SUCCESS: string = "1".repeat(16);
export const FAILED: string = "2".repeat(16);
export const OTHER: string = "f".repeat(16);
const slots: Readonly<Record<string, string>> = { PENDING, SUCCESS, FAILED };

/** A callback of transaction tx-1, as the flow hands it to the inbox. */
export function event(status: string, changes: Partial<VerifiedEvent> = {}): VerifiedEvent {
  return {
    key: KEY,
    slot: slots[status] ?? "3".repeat(16),
    variantSlot: () => OTHER,
    id: "tx-1",
    name: "DEPOSIT",
    status,
    rank: status === "PENDING" ? 0 : 1,
    identity: { event: "DEPOSIT", referenceId: "o-1" },
    amount: "10",
    signedAt: 500,
    fresh: true,
    retentionMs: DAY,
    verdict: "run",
    detail: null,
    referenceKey: null,
    delivery: {
      flow: "payments",
      tenant: "t",
      source: "callback",
      rawBody: new TextEncoder().encode('{"referenceId":"o-1"}'),
      headers: {},
      keyId: "k",
      receivedAt: 900,
    },
    ...changes,
  };
}

export const lookedUp = (status: string, amount: string): VerifiedEvent => {
  const given = event(status, { amount });
  return { ...given, delivery: { ...given.delivery, source: "lookup" } };
};

/** One record, and what is done to it at a time that goes on by itself. */
export class Ground {
  record: IdempotencyRecord | null = null;
  now = 1_000;

  accept(given: VerifiedEvent, referenceReused = false): Accepted {
    const { record, accepted } = accept(this.record, given, { now: this.now, referenceReused });
    if (accepted.outcome !== "expired") this.record = record;
    return accepted;
  }

  begin(slot: string, job: Partial<Job> = {}, force: BeginOptions["force"] = null, owner = "w"): Begun {
    const whole = { eventId: KEY + slot, replay: 0, ...job };
    return begin(this.record, slot, whole, { owner, leaseMs: 100, force }, this.now);
  }

  finish(slot: string, token: string, ending: Ending): ReturnType<typeof finish> {
    return finish(this.record, slot, { eventId: KEY + slot, replay: 0 }, token, ending, this.now);
  }

  slot(key: string): Slot {
    const slot = this.record?.slots[key];
    if (slot === undefined) throw new Error(`no slot ${key}`);
    return slot;
  }

  life(key: string): Life {
    if (this.record === null) throw new Error("no record");
    const life = lifeOf(this.record, KEY + key);
    if (life === null) throw new Error(`nothing is known of ${key}`);
    return life;
  }
}

/** An event that was taken: its ground, and the token of its lease. */
export function running(given: VerifiedEvent = event("SUCCESS")): { ground: Ground; token: string } {
  const ground = new Ground();
  ground.accept(given);
  const begun = ground.begin(given.slot);
  if (begun.kind !== "leased") throw new Error(begun.kind);
  return { ground, token: begun.lease.token };
}
