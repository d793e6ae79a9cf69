import { claimKeyFor, ONLY_TENANT } from "../../packages/core/src/inbox/record/keys.ts";
import { referenceOf } from "../../packages/core/src/inbox/record/record.ts";
import type { Chronicle, HandlerCall } from "./chronicle.ts";
import { begunAt, hasExpired, lastWriteOf, lostBetween } from "./explanations.ts";

/** A handler of a SUCCESS was called. */
interface Success {
  readonly call: HandlerCall;
  /** The key of the claim on its reference. */
  readonly claimKey: string;
}

/** The handlers of two transactions' SUCCESS with one reference that were called although the record of the first was kept. */
export function secondSuccess(chronicle: Chronicle): string | null {
  if (!chronicle.plan.sharesReferences) return null;
  const successes = chronicle.calls.flatMap((call) => successIn(chronicle, call) ?? []);
  for (const [at, second] of successes.entries()) {
    for (const first of successes.slice(0, at)) {
      if (first.claimKey !== second.claimKey || first.call.key === second.call.key) continue;
      if (!isKept(chronicle, first.call, second.call)) continue;
      const until = second.call.from;
      // The end of the second event had let its claim expire. A store without replicas may lose that end, and a person replays the event.
      const losable = [
        first.call.key,
        first.claimKey,
        ...(chronicle.plan.replicated ? [] : [second.call.key]),
      ];
      if (losable.some((key) => lostBetween(chronicle, key, 0, until))) continue;
      if ([first, second].some(({ call }) => isReleased(chronicle, call.eventId, until))) continue;
      const who = ({ call }: Success): string =>
        `${call.handler} of ${call.key.slice(0, 6)} (${call.process}, at ${call.from.toFixed(1)})`;
      return `${who(second)} is called for the reference of ${who(first)}, whose record is kept`;
    }
  }
  return null;
}

/** The SUCCESS of a call, with the reference of its slot: an event that contradicts its record may have another reference. */
function successIn({ begins }: Chronicle, call: HandlerCall): Success | null {
  const record = call.token === null ? undefined : begins.get(call.token)?.after;
  const slot = record?.slots[call.eventId.slice(32)];
  if (record === undefined || slot?.status !== "SUCCESS" || call.isOnHeld) return null;
  const reference = referenceOf(record, slot) ?? "";
  return { call, claimKey: claimKeyFor(ONLY_TENANT, record.flow, slot.name, reference) };
}

/** True if the record of the first call still exists at the second call, by the store's clock. */
function isKept(chronicle: Chronicle, first: HandlerCall, second: HandlerCall): boolean {
  const last = lastWriteOf(chronicle, first.key, begunAt(chronicle, first), second.from);
  return last !== null && !hasExpired(last, second.now);
}

/** True if a person has replayed the event while it was held because another event has its reference. */
function isReleased({ writes }: Chronicle, eventId: string, until: number): boolean {
  const [key, slot] = [eventId.slice(0, 32), eventId.slice(32)];
  return writes.some(({ key: written, at, before, after }) => {
    if (written !== key || at > until) return false;
    const slotBefore = before?.slots[slot];
    return (
      slotBefore?.work?.reason === "reference-reused" &&
      slotBefore.state === "held" &&
      after.slots[slot]?.state !== "held"
    );
  });
}
