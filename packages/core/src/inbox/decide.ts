import { inboxError } from "../notices/notice.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { Events } from "./events.ts";
import type { InboxParts } from "./parts.ts";
import { decideOnce, discard, replay, retryNow } from "./record/decisions.ts";
import { recordKeyOf } from "./record/event.ts";
import type { Decision, ReplayDecision, RetryDecision } from "./record/life.ts";
import { type FinishedClaims, finishedClaims } from "./record/reference-claim.ts";

/** What decisions take from their inbox. */
export interface DecideParts {
  readonly parts: InboxParts;
  ready(): Promise<void>;
  /** Called after a decision was written, since it changes what is due and how many entries are held. */
  decided(): void;
}

/** The decisions that people make about held events. */
export function decisions({
  parts,
  ready,
  decided: onDecided,
}: DecideParts): Pick<Events, "replay" | "discard" | "retryNow"> {
  const { records, environment, leaseMs: deadlineMs } = parts;

  async function decide(
    eventId: string,
    revision: string | undefined,
    step: (record: Parameters<typeof replay>[0], now: number) => boolean,
  ): Promise<{ readonly closing: FinishedClaims | null; readonly version: string | null }> {
    await ready();
    const token = environment.token();
    let closing: FinishedClaims | null = null;
    const { answer: decided, version } = await records.change({
      key: recordKeyOf(eventId),
      deadlineMs,
      step: (record, now) => {
        const answer = decideOnce(record, eventId, { token, revision }, () => step(record, now));
        closing = record === null ? null : finishedClaims(record);
        const isNew = answer === "decided";
        return { answer, record: isNew ? record : null, announce: isNew };
      },
    });
    if (decided === "missing") throw notHeld(eventId);
    if (decided === "changed") throw changed(eventId);
    onDecided();
    return { closing, version };
  }

  return {
    async replay(eventId: string, decision: ReplayDecision) {
      await decide(eventId, decision.revision, (record, now) => replay(record, eventId, decision, now));
    },
    async retryNow(eventId: string, decision: RetryDecision) {
      await ready();
      let isForward = false;
      await records.change({
        key: recordKeyOf(eventId),
        deadlineMs,
        step: (record, now) => {
          // Computed again after its write was made, it finds nothing to bring forward. Then the first computation counts.
          const isNew = retryNow(record, eventId, decision, now);
          isForward ||= isNew;
          return { answer: isNew, record: isNew ? record : null, announce: isNew };
        },
      });
      onDecided();
      return isForward;
    },
    async discard(eventId: string, decision: Decision) {
      const { closing, version } = await decide(eventId, decision.revision, (record, now) =>
        discard(record, eventId, decision, now),
      );
      if (closing === null) return;
      const closed = parts.claims.close(recordKeyOf(eventId), version, closing);
      await closed.catch((error: unknown) => parts.notify(inboxError("claim", error)));
    },
  };
}

function notHeld(eventId: string): PayhooksError {
  return new PayhooksError(
    "ERR_HELD_NOT_FOUND",
    `No held entry has the eventId ${JSON.stringify(String(eventId).slice(0, 64))}.`,
    {
      fix: 'List them with receiver.events.list({ state: "held" }); it may have been replayed or discarded already.',
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
