import { PayhooksError } from "../errors.ts";
import {
  type Decision,
  type EventFilter,
  type Held,
  type HeldEntries,
  type HeldFilter,
  type ReplayDecision,
  recordKeyOf,
} from "./inbox.ts";
import type { InboxParts } from "./parts.ts";
import { isUnreadable } from "./record/codec.ts";
import { discard, heldOf, replay } from "./record/decisions.ts";
import { label } from "./record/index-of.ts";
import type { ListCursor } from "./store.ts";

const PAGE = 100;

/** What the held list takes from its inbox. */
export interface HeldParts {
  readonly parts: InboxParts;
  ready(): Promise<void>;
  /** A decision was written: what is due now, and how many are held, has changed. */
  decided(): void;
}

/** The held list over a store. Entries that are replayed or discarded while somebody lists them make it skip none. */
export function heldEntries({ parts, ready, decided }: HeldParts): HeldEntries {
  const { store, changes, leaseMs: deadlineMs } = parts;

  async function* list({
    flow,
    tenant,
    reason,
    limit = Number.POSITIVE_INFINITY,
  }: HeldFilter = {}): AsyncGenerator<Held> {
    const filter: EventFilter = {
      state: "held",
      flow,
      reason,
      tenant: tenant === undefined ? tenant : label(tenant),
    };
    await ready();
    let left = limit;
    let cursor: ListCursor | null = null;
    do {
      const page = await store.list(filter, cursor, Math.min(PAGE, left));
      for (const { eventId, versioned } of page.events) {
        const entry = isUnreadable(versioned.record) ? null : heldOf(versioned.record, eventId);
        if (entry === null) continue;
        if (left-- <= 0) return;
        yield entry;
      }
      cursor = page.next;
    } while (cursor !== null && left > 0);
  }

  async function decide(
    eventId: string,
    step: (record: Parameters<typeof replay>[0], now: number) => boolean,
  ): Promise<void> {
    await ready();
    const isHeld = await changes.change({
      key: recordKeyOf(eventId),
      deadlineMs,
      step: (record, now) => {
        const answer = step(record, now);
        return { answer, record: answer ? record : null, announce: answer };
      },
    });
    if (!isHeld) throw notHeld(eventId);
    decided();
  }

  return {
    list,
    replay: (eventId: string, decision: ReplayDecision) =>
      decide(eventId, (record, now) => replay(record, eventId, decision, now)),
    discard: (eventId: string, decision: Decision) =>
      decide(eventId, (record, now) => discard(record, eventId, decision, now)),
  };
}

function notHeld(eventId: string): PayhooksError {
  return new PayhooksError(
    "ERR_HELD_NOT_FOUND",
    `No held entry has the eventId ${JSON.stringify(String(eventId).slice(0, 64))}.`,
    {
      fix: "List them with receiver.held.list(); it may have been replayed or discarded already.",
    },
  );
}
