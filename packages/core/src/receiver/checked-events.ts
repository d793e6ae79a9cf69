import type { EventQuery, Events } from "../inbox/events.ts";
import type { ReplayDecision } from "../inbox/record/life.ts";
import type { NoticeBoard } from "../notices/board.ts";
import { checkNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";

/** The events of an inbox, as a receiver hands them out: what is asked is checked first, and decisions are told. */
export function checkedEvents(
  events: Events,
  notices: NoticeBoard,
  checkQuery: (query: EventQuery) => void,
): Events {
  return {
    ...events,
    list: async (query = {}) => {
      checkQuery(query);
      return events.list(query);
    },
    replay: async (eventId, decision) => {
      checkReplay(decision);
      await events.replay(eventId, decision);
      notices.post({ type: "replayed", eventId, by: decision.by, note: decision.note });
    },
    retryNow: async (eventId, decision) => {
      checkNames("retryNow", decision, { by: true, note: true, inMs: true });
      checkDelay(decision.inMs);
      return events.retryNow(eventId, decision);
    },
    discard: async (eventId, decision) => {
      checkNames("discard", decision, { by: true, note: true, revision: true });
      await events.discard(eventId, decision);
      notices.post({ type: "discarded", eventId, by: decision.by, note: decision.note });
    },
  };
}

/** An attempt is brought forward to a time within a day. */
const MAX_DELAY_MS = 86_400_000;

function checkDelay(inMs = 0): void {
  if (Number.isSafeInteger(inMs) && inMs >= 0 && inMs <= MAX_DELAY_MS) return;
  throw new PayhooksError("ERR_OPTION_INVALID", `inMs of retryNow is ${String(inMs)}.`, {
    fix: `Give whole milliseconds from 0 to ${MAX_DELAY_MS}.`,
  });
}

/** Only named handlers may repeat their effects. Another handler may be unfinished with half of its effects made. */
function checkReplay(decision: ReplayDecision): void {
  checkNames("replay", decision, {
    by: true,
    note: true,
    revision: true,
    handlers: true,
    evenIfExpired: true,
    again: true,
  });
  const { again, handlers } = decision;
  if (again !== true || (handlers?.length ?? 0) > 0) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "A replay was given `again` but no handlers.", {
    fix: 'Name the handlers whose effects are to happen again: { again: true, handlers: ["deposit"] }.',
  });
}
