import { inboxError } from "../notices/notice.ts";
import { checkChoice, checkNames } from "../protocol/check-names.ts";
import { checkLimit } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { FLOWS } from "../protocol/events.ts";
import { HELD_REASONS } from "../protocol/held-reasons.ts";
import type { EventFilter } from "./events.ts";
import type { HeldEntries, HeldFilter } from "./inbox.ts";
import type { InboxParts } from "./parts.ts";
import { isUnreadable } from "./record/codec.ts";
import { decideOnce, discard, heldOf, replay } from "./record/decisions.ts";
import { recordKeyOf, slotKeyOf } from "./record/event.ts";
import { label } from "./record/label.ts";
import type { Decision, Held, ReplayDecision } from "./record/life.ts";
import type { ListCursor } from "./store.ts";

const PAGE = 100;

/** What the held list takes from its inbox. */
export interface HeldParts {
  readonly parts: InboxParts;
  ready(): Promise<void>;
  /** Called after a decision was written, since it changes what is due and how many entries are held. */
  decided(): void;
}

/** The held list of a store. Listing skips no entry when others are replayed or discarded meanwhile. */
export function heldEntries({ parts, ready, decided: onDecided }: HeldParts): HeldEntries {
  const { store, changes, environment, leaseMs: deadlineMs } = parts;

  async function* list(wanted: HeldFilter = {}): AsyncGenerator<Held> {
    checkNames("held.list", wanted, { flow: true, tenant: true, reason: true, limit: true });
    const { flow, tenant, reason, limit = Number.POSITIVE_INFINITY } = wanted;
    checkChoice("The flow of held.list", flow, FLOWS);
    checkChoice("The reason of held.list", reason, HELD_REASONS);
    checkLimit("The limit of held.list", limit);
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
    revision: string | undefined,
    step: (record: Parameters<typeof replay>[0], now: number) => boolean,
  ): Promise<string | null> {
    await ready();
    const token = environment.token();
    let reference: string | null = null;
    const decided = await changes.change({
      key: recordKeyOf(eventId),
      deadlineMs,
      step: (record, now) => {
        reference ??= record?.slots[slotKeyOf(eventId)]?.work?.reference ?? null;
        const answer = decideOnce(record, eventId, { token, revision }, () => step(record, now));
        const isNew = answer === "decided";
        return { answer, record: isNew ? record : null, announce: isNew };
      },
    });
    if (decided === "missing") throw notHeld(eventId);
    if (decided === "changed") throw changed(eventId);
    onDecided();
    return reference;
  }

  return {
    list,
    async replay(eventId: string, decision: ReplayDecision) {
      await decide(eventId, decision.revision, (record, now) => replay(record, eventId, decision, now));
    },
    async discard(eventId: string, decision: Decision) {
      const reference = await decide(eventId, decision.revision, (record, now) =>
        discard(record, eventId, decision, now),
      );
      if (reference === null) return;
      const closing = parts.claims.eventEnded(reference, recordKeyOf(eventId));
      await closing.catch((error: unknown) => parts.notify(inboxError("claim", error)));
    },
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

function changed(eventId: string): PayhooksError {
  return new PayhooksError(
    "ERR_HELD_CHANGED",
    `The held entry ${eventId} is no longer as it was when it was looked at: it was replayed and held again, or another event of its transaction has run or is about to.`,
    { fix: "Look at it once more, and decide about what is there now." },
  );
}
