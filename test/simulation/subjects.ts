import type { Subject } from "../../packages/core/src/inbox/record/event.ts";
import type { Chronicle, HandlerCall, Write } from "./chronicle.ts";
import { deliveryOf } from "./deliveries.ts";
import { couldNotTellTime, lostBetween } from "./explanations.ts";

/** A handler of an event of a subject was called. */
interface SubjectCall {
  readonly call: HandlerCall;
  readonly subject: Subject;
  /** The write that took the subject for its run; its place among the writes, or -1. */
  readonly takenAt: number;
}

/** Handlers of an event that were called after those of a later event of the same subject, or without the subject. */
export function olderAfterLatest(chronicle: Chronicle): string | null {
  const subjects = subjectsIn(chronicle);
  const contradiction = changedBehindARun(chronicle, new Set([...subjects.values()].map(({ key }) => key)));
  if (contradiction !== null) return contradiction;
  const subjectCalls = chronicle.calls.flatMap((call): SubjectCall[] => {
    const subject = call.isOnHeld ? undefined : subjects.get(call.eventId);
    if (subject === undefined) return [];
    const takenAt = chronicle.writes.findIndex(
      ({ key, after }) => key === subject.key && after.lease?.token === call.token,
    );
    return [{ call, subject, takenAt }];
  });
  for (const [at, { call, subject, takenAt }] of subjectCalls.entries()) {
    if (lostBetween(chronicle, subject.key, 0, call.from)) continue;
    const who = `${call.handler} of ${call.key.slice(0, 6)} (${call.process}, at ${call.from.toFixed(1)})`;
    if (takenAt < 0) return `${who} is called, and its run does not have the subject`;
    if (couldNotTellTime(chronicle, call.process, call.from)) continue;
    const later = subjectCalls
      .slice(0, at)
      .find((one) => one.subject.key === subject.key && one.subject.at > subject.at);
    // A run that was frozen continues with the handler that it has called. Its lease decides about the handlers after that.
    if (later === undefined || takenAt < later.takenAt) continue;
    return `${who} is called after ${later.call.handler} of ${later.call.key.slice(0, 6)}, which was signed later`;
  }
  return null;
}

/** The subject of each event that was sent, by its eventIds. */
function subjectsIn({ plan }: Chronicle): ReadonlyMap<string, Subject> {
  const found = new Map<string, Subject>();
  const contradicted = new Set<string>();
  for (const event of plan.events) {
    const { verified, eventId, variantId } = deliveryOf(event);
    if (verified.subject === undefined) continue;
    // Events that contradict each other share a usual slot, and only the first that arrives has it.
    const other = found.get(eventId) ?? verified.subject;
    if (other.key !== verified.subject.key || other.at !== verified.subject.at) contradicted.add(eventId);
    found.set(eventId, verified.subject);
    found.set(variantId, verified.subject);
  }
  for (const eventId of contradicted) found.delete(eventId);
  return found;
}

/** A subject that went back to an earlier event, or to another event during a run. */
function changedBehindARun(chronicle: Chronicle, keys: ReadonlySet<string>): string | null {
  for (const { key, before, after, at, now } of chronicle.writes) {
    if (before === null || !keys.has(key) || lostBetween(chronicle, key, 0, at)) continue;
    if (after.signedAt < before.signedAt)
      return `the subject ${key.slice(0, 6)} goes back to an earlier event`;
    if (before.lease === null || after.id === before.id || isOver(before.lease, now)) continue;
    return `the subject ${key.slice(0, 6)} is taken at ${at.toFixed(1)} while another event's run has it`;
  }
  return null;
}

function isOver({ until, originalLengthMs }: NonNullable<Write["after"]["lease"]>, now: number): boolean {
  return until <= now || until - now > originalLengthMs + 5_000;
}

/** True if an event has ended because a later event of its subject has begun. */
export function isOvertaken({ plan, writes }: Chronicle, eventId: string, until: number): boolean {
  const subjects = plan.events.flatMap((event) => {
    const { verified, eventId: usual, variantId } = deliveryOf(event);
    return (usual === eventId || variantId === eventId) && verified.subject !== undefined
      ? [verified.subject]
      : [];
  });
  return subjects.some((subject) =>
    writes.some(
      ({ key, at, after }) =>
        key === subject.key && at <= until && after.id !== eventId && after.signedAt >= subject.at,
    ),
  );
}
