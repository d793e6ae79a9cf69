/** The invariants: they hold in every history, whatever goes wrong in it. */
import { isCanary } from "../../packages/core/src/inbox/record/canary.ts";
import type { Chronicle, HandlerCall, Write } from "./chronicle.ts";
import { deliveryOf } from "./deliveries.ts";
import {
  begunAt,
  couldNotTellTime,
  hasExpired,
  isExplained,
  lapseOf,
  lastWriteOf,
  lostBetween,
} from "./explanations.ts";
import { handlersFor, isBooking, isHeldOnCrash, MAX_ATTEMPTS } from "./merchant-process.ts";
import { WINDOW_MS } from "./reference-plan.ts";
import { secondSuccess } from "./references.ts";
import { isOvertaken, olderAfterLatest } from "./subjects.ts";
import { tableDisagrees } from "./table.ts";
import { isFinal } from "./written.ts";

/** Returns how a history contradicts the invariant, or null. */
export interface Invariant {
  readonly name: string;
  /** One sentence. */
  readonly says: string;
  readonly broken: (chronicle: Chronicle) => string | null;
}

function acknowledgedEndsOrIsHeld(chronicle: Chronicle): string | null {
  const { answers, losses, rest, plan } = chronicle;
  for (const { event, status, at, askedAt, standing } of answers) {
    if (status !== 200) continue;
    const { eventId, variantId } = deliveryOf(event);
    const key = eventId.slice(0, 32);
    // A process whose machine slept answers from its knowledge before the sleep.
    const knownSince = Math.min(askedAt, at - LONGEST_ANSWER_MS);
    const mayBeLost = losses.some(
      (loss) => loss.keys.has(key) && (!plan.replicated || loss.isEverything) && loss.at >= knownSince,
    );
    if (mayBeLost) continue;
    const record = rest?.records.get(key);
    const slots = [eventId, variantId].map((id) => record?.slots[id.slice(32)]);
    if (slots.some((slot) => slot !== undefined && isFinal(slot.state))) continue;
    if (standing === "past" && record?.isClosed === true) continue;
    const last = lastWriteOf(chronicle, key, at);
    if (rest !== null && last !== null && hasExpired(last, rest.now)) continue;
    return `event ${event.number} was acknowledged at ${at.toFixed(1)}, and is ${slots[0]?.state ?? "gone"} in the end`;
  }
  return null;
}

/** A process cannot know of a loss that happened while the answer was on its way. */
const LONGEST_ANSWER_MS = 5_000;

function acknowledgedIsStored({ answers, losses }: Chronicle): string | null {
  for (const { event, status, at, askedAt, standing } of answers) {
    if (status !== 200 || standing !== "missing") continue;
    const { eventId } = deliveryOf(event);
    const isLost = losses.some(
      (loss) => loss.at >= askedAt && loss.at <= at && loss.keys.has(eventId.slice(0, 32)),
    );
    if (!isLost)
      return `event ${event.number} was answered 200 at ${at.toFixed(1)}, and the store knows nothing of it`;
  }
  return null;
}

function handledMeansOver({ answers, losses, decisions, plan }: Chronicle): string | null {
  if (plan.operation !== "handled") return null;
  for (const { event, status, at, askedAt, standing } of answers) {
    if (status !== 200 || standing === "over" || standing === "past") continue;
    const { eventId, variantId } = deliveryOf(event);
    const key = eventId.slice(0, 32);
    if (losses.some((loss) => loss.at >= askedAt && loss.at <= at && loss.keys.has(key))) continue;
    // The event was held when the answer was decided. A person has replayed it since.
    if (decisions.some((one) => (one.eventId === eventId || one.eventId === variantId) && one.at <= at))
      continue;
    return `event ${event.number} was answered 200 at ${at.toFixed(1)}, and had not ended`;
  }
  return null;
}

function doneMeansRun({ writes, calls, handlerSets }: Chronicle): string | null {
  for (const { at, process, before, after, key } of writes) {
    for (const [slot, slotAfter] of Object.entries(after.slots)) {
      if (slotAfter.state !== "done" || before?.slots[slot]?.state === "done") continue;
      const eventId = key + slot;
      for (const { name } of handlersFor(handlerSets.get(process) ?? 0, slotAfter.name, slotAfter.status)) {
        const hasRun = calls.some(
          (call) =>
            call.eventId === eventId && call.handler === name && call.end === "done" && (call.to ?? at) <= at,
        );
        if (!hasRun)
          return `${titleOf(eventId)} is done at ${at.toFixed(1)}, and its handler ${name} never was`;
      }
    }
  }
  return null;
}

function noSecondEndInSilence(chronicle: Chronicle): string | null {
  for (const [first, second] of repeated(chronicle.calls)) {
    if (first.end !== "done" || first.timedOut) continue;
    const [older, newer] = inOrder(chronicle, first, second);
    const since = begunAt(chronicle, older);
    if (lostBetween(chronicle, first.key, since, Math.max(first.from, second.from))) continue;
    const what = `${first.handler} of ${titleOf(first.eventId)}, which ended (${first.process}, called at ${first.from.toFixed(1)}), is called again at ${second.from.toFixed(1)} (${second.process})`;
    if (lapseOf(chronicle, older, newer) === null) return `${what}, though its lease held`;
    const isReported = chronicle.notices.some(
      ({ notice, at }) => notice.type === "double-risk" && notice.eventId === first.eventId && at >= since,
    );
    if (!isReported) return `${what}, and nobody is told`;
  }
  return null;
}

function onceMeansOnce(chronicle: Chronicle): string | null {
  for (const [first, second] of repeated(chronicle.calls)) {
    if (!isHeldOnCrash(first.handler) || first.timedOut || first.end === "threw" || first.end === "rejected")
      continue;
    const [older, newer] = inOrder(chronicle, first, second);
    if (older !== first || begunAt(chronicle, older) === begunAt(chronicle, newer)) continue;
    const isDecided = chronicle.decisions.some(
      ({ eventId, at }) => eventId === first.eventId && at <= second.from,
    );
    if (isDecided || lostBetween(chronicle, first.key, 0, second.from)) continue;
    return `${first.handler} of ${titleOf(first.eventId)} is called again at ${second.from.toFixed(1)} (${second.process}), though its first call (${first.process}) had no end that is stored`;
  }
  return null;
}

function doubleRiskHasACause(chronicle: Chronicle): string | null {
  for (const { at, process, notice } of chronicle.notices) {
    if (notice.type !== "double-risk") continue;
    const { eventId, why } = notice;
    const isTimeout = chronicle.calls.some(
      (call) => call.eventId === eventId && call.process === process && call.timedOut,
    );
    if (why === "timeout" && isTimeout) continue;
    if (isExplained(chronicle, eventId, process, at)) continue;
    return `${process} tells of a double-risk (${why}) of ${titleOf(eventId)} at ${at.toFixed(1)}, and nothing had happened to it`;
  }
  return null;
}

function oneHandlerOfATransactionAtATime(chronicle: Chronicle): string | null {
  const { calls } = chronicle;
  for (const [at, first] of calls.entries()) {
    for (const second of calls.slice(at + 1)) {
      if (second.key !== first.key || second === first) continue;
      const [one, other] = inOrder(chronicle, first, second);
      const [earlier, later] = first.from <= second.from ? [first, second] : [second, first];
      if (earlier.to !== null && earlier.to <= later.from) continue;
      if (one.timedOut || lostBetween(chronicle, one.key, begunAt(chronicle, one), other.from)) continue;
      if (one.token !== other.token && lapseOf(chronicle, one, other) !== null) continue;
      if (isReleasedByDecision(chronicle, one, other)) continue;
      return `${one.handler} (${one.process}, from ${one.from.toFixed(1)}) and ${other.handler} (${other.process}, from ${other.from.toFixed(1)}) of ${one.key.slice(0, 6)} run at the same time`;
    }
  }
  return null;
}

/** A decision about a held entry does not wait for onHeld handlers that are being called. */
function isReleasedByDecision({ decisions }: Chronicle, one: HandlerCall, other: HandlerCall): boolean {
  return one.isOnHeld && decisions.some(({ eventId, at }) => eventId === one.eventId && at <= other.from);
}

function calledUnderItsLease(chronicle: Chronicle): string | null {
  for (const call of chronicle.calls) {
    const { key, token, leaseThen, from, process, handler } = call;
    if (token === null)
      return `${process} calls ${handler} of ${titleOf(call.eventId)} without having begun it`;
    if (leaseThen === token || lostBetween(chronicle, key, 0, from)) continue;
    if (isReleasedByDecision(chronicle, { ...call, isOnHeld: true }, call)) continue;
    if (couldNotTellTime(chronicle, process, from)) continue;
    return `${process} calls ${handler} of ${titleOf(call.eventId)} at ${from.toFixed(1)} under ${token}, and the store has ${leaseThen ?? "no lease"}`;
  }
  return null;
}

function ownersWriteAlone(chronicle: Chronicle): string | null {
  for (const write of chronicle.writes) {
    const { before, after, process, key, at, now } = write;
    const lease = before?.lease ?? null;
    // Any process may end a canary. A subject has no slot, and an invariant of its own.
    if (before === null || lease === null || isCanary(key) || lease.slot === "") continue;
    if (chronicle.begins.get(lease.token)?.process === process || isOver(lease, now)) continue;
    const slotBefore = before.slots[lease.slot];
    const slotAfter = after.slots[lease.slot];
    const isDecided = chronicle.decisions.some(({ eventId }) => eventId === key + lease.slot);
    const isSame =
      slotBefore?.state === slotAfter?.state &&
      handlersOf(slotBefore) === handlersOf(slotAfter) &&
      after.lease?.token === lease.token;
    if (isSame || isDecided || lostBetween(chronicle, key, 0, at)) continue;
    return `${process} changes at ${at.toFixed(1)} what ${chronicle.begins.get(lease.token)?.process ?? "another"} runs of ${key.slice(0, 6)}`;
  }
  return null;
}

function isOver(
  { until, originalLengthMs }: { readonly until: number; readonly originalLengthMs: number },
  now: number,
): boolean {
  return until <= now || until - now > originalLengthMs + 5_000;
}

/** The states of the handlers without due times, since any process may correct a due time that a wrong clock has written. */
function handlersOf(slot: Write["after"]["slots"][string] | undefined): string {
  return JSON.stringify(slot?.work?.handlerStates ?? null, (name, value) =>
    name === "dueAt" ? undefined : value,
  );
}

function noPendingAfterTheEnd(chronicle: Chronicle): string | null {
  for (const [at, end] of chronicle.calls.entries()) {
    const { key, eventId, from, isOnHeld } = end;
    const slot = slotOf(chronicle, end);
    if (isOnHeld || slot?.verdict !== "run" || slot.status === "" || slot.status === "PENDING") continue;
    for (const call of chronicle.calls.slice(at + 1)) {
      if (call.key !== key || call.isOnHeld || slotOf(chronicle, call)?.status !== "PENDING") continue;
      if (call.from <= from || lostBetween(chronicle, key, 0, call.from)) continue;
      // A process that was frozen in between continues with the handler that it has called.
      if (begunAt(chronicle, call) < begunAt(chronicle, end)) continue;
      return `${call.handler} of the PENDING ${titleOf(call.eventId)} is called at ${call.from.toFixed(1)}, after ${end.handler} of ${titleOf(eventId)} was at ${from.toFixed(1)}`;
    }
  }
  return null;
}

function slotOf(
  { begins }: Chronicle,
  { token, eventId }: HandlerCall,
): Write["after"]["slots"][string] | undefined {
  return token === null ? undefined : begins.get(token)?.after.slots[eventId.slice(32)];
}

function heldStaysHeld(chronicle: Chronicle): string | null {
  const { writes, decisions, rest } = chronicle;
  for (const { key, at, before, after } of writes) {
    for (const [slot, slotBefore] of Object.entries(before?.slots ?? {})) {
      if (slotBefore.state !== "held" || after.slots[slot]?.state === "held") continue;
      if (after.slots[slot]?.state === "stale" && isOvertaken(chronicle, key + slot, at)) continue;
      if (!decisions.some((decision) => decision.eventId === key + slot && decision.at <= at)) {
        return `${titleOf(key + slot)} was held, and is ${after.slots[slot]?.state ?? "gone"} at ${at.toFixed(1)}, though nobody decided so`;
      }
    }
    for (const [slot, slotAfter] of Object.entries(after.slots)) {
      if (slotAfter.state !== "held" || lostBetween(chronicle, key, at, Number.POSITIVE_INFINITY)) continue;
      if (rest === null || rest.records.get(key)?.slots[slot] !== undefined) continue;
      const last = lastWriteOf(chronicle, key, at);
      if (last === null || !hasExpired(last, rest.now))
        return `${titleOf(key + slot)} was held at ${at.toFixed(1)}, and is gone`;
    }
  }
  return null;
}

function heldForAReason(chronicle: Chronicle): string | null {
  const { writes, calls, handlerSets } = chronicle;
  for (const { key, before, after, at, process } of writes) {
    for (const [slot, slotAfter] of Object.entries(after.slots)) {
      const reason =
        slotAfter.state === "held" && before?.slots[slot]?.state !== "held" ? slotAfter.work?.reason : null;
      const eventId = key + slot;
      const own = calls.filter((call) => call.eventId === eventId && !call.isOnHeld && call.from <= at);
      const handlers = handlersFor(handlerSets.get(process) ?? 0, slotAfter.name, slotAfter.status);
      const held = handlers.find(({ onCrash }) => onCrash === "hold");
      if (
        reason === "crashed" &&
        held !== undefined &&
        own.length === 0 &&
        !hasStartOfItsOwn(writes, eventId, held.name)
      ) {
        return `${titleOf(eventId)} is held as crashed, and no handler of it was ever called`;
      }
      if (reason === "rejected" && !own.some(({ end }) => end === "rejected")) {
        return `${titleOf(eventId)} is held as rejected, and no handler of it rejected it`;
      }
      // A deploy has removed the handler. The process that had it gave it up, by the `maxAttempts` of that time.
      const isTried = Object.entries(slotAfter.work?.handlerStates ?? {}).some(
        ([name, { reason: why, attempts }]) => {
          const handler = handlers.find((one) => one.name === name);
          return (
            why === "exhausted" &&
            (handler === undefined || attempts >= (handler.maxAttempts ?? MAX_ATTEMPTS))
          );
        },
      );
      // The process knows what became of its handlers, also if the store has lost it.
      if (reason === "exhausted" && !isTried && !lostBetween(chronicle, key, 0, at)) {
        return `${titleOf(eventId)} is held as exhausted, and no handler of it has used up its attempts`;
      }
    }
  }
  return null;
}

/** The start of a handler that must not run twice is a write of its own. A handler was not called before that write. */
function hasStartOfItsOwn(writes: readonly Write[], eventId: string, handler: string): boolean {
  const [key, slot] = [eventId.slice(0, 32), eventId.slice(32)];
  const isStarted = (record: Write["after"] | null): boolean =>
    record?.slots[slot]?.work?.handlerStates[handler]?.state === "started";
  const start = writes.find(
    (write) => write.key === key && isStarted(write.after) && !isStarted(write.before),
  );
  return start !== undefined && start.before?.lease?.token === start.after.lease?.token;
}

function everythingComesToRest({ rest, answers }: Chronicle): string | null {
  if (rest === null) return "the history was not played to its end";
  for (const { event, status, at } of answers) {
    // A copy that comes after a pause may be too old.
    if (status === 400 && at - event.signedAt > WINDOW_MS) continue;
    if (status !== 200 && status !== 503) return `event ${event.number} was answered ${status}`;
  }
  const [waiting] = rest.unacknowledged;
  if (waiting !== undefined) return `event ${waiting.number} was not acknowledged by ${rest.at.toFixed(0)}`;
  for (const [key, { slots, lease }] of rest.records) {
    if (lease !== null) return `${key.slice(0, 6)} is still leased in the end`;
    for (const [slot, { state }] of Object.entries(slots)) {
      if (!isFinal(state)) return `${titleOf(key + slot)} is still ${state} in the end`;
    }
  }
  return rest.isReached ? null : "it did not come to rest";
}

function closeEnds({ closings, late, faults }: Chronicle): string | null {
  const [first] = late;
  if (first !== undefined) return first;
  for (const { process, at, graceMs, closedAt } of closings) {
    if (closedAt === null && !faults.some((fault) => fault.what === "death" && fault.process === process)) {
      return `${process} began to close at ${at.toFixed(1)}, with ${graceMs} ms of grace, and did not end`;
    }
  }
  return null;
}

/** The merchant's database decides, whatever dies, freezes or is lost. */
function effectsExactlyOnce({ booked, calls, plan }: Chronicle): string | null {
  for (const [effectId, times] of booked) {
    if (times > 1) return `effect ${titleOf(effectId)} was committed ${times} times`;
  }
  for (const { end, handler, effectId } of calls) {
    if (plan.hasEffects && end === "done" && isBooking(handler) && !booked.has(effectId)) {
      return `${handler} of ${titleOf(effectId)} is done, and its effect was never committed`;
    }
  }
  return null;
}

/** Two calls in the order in which their runs were begun. */
function inOrder(chronicle: Chronicle, one: HandlerCall, other: HandlerCall): [HandlerCall, HandlerCall] {
  return begunAt(chronicle, one) <= begunAt(chronicle, other) ? [one, other] : [other, one];
}

/** Calls of one handler on one event, in their order. */
function* repeated(calls: readonly HandlerCall[]): Generator<readonly [HandlerCall, HandlerCall]> {
  const last = new Map<string, HandlerCall[]>();
  for (const call of calls) {
    if (call.isOnHeld) continue;
    const before = last.get(call.effectId) ?? [];
    for (const one of before) yield [one, call];
    before.push(call);
    last.set(call.effectId, before);
  }
}

function titleOf(eventId: string): string {
  return `${eventId.slice(0, 6)} ${eventId.slice(32, 36)}`;
}

export const INVARIANTS: readonly Invariant[] = [
  {
    name: "acknowledgedIsStored",
    says: "When a delivery is answered 200, the store has its event.",
    broken: acknowledgedIsStored,
  },
  {
    name: "acknowledgedEndsOrIsHeld",
    says: "Every event that was answered 200 is done, stale, discarded or held once all is quiet, unless the store has lost its record.",
    broken: acknowledgedEndsOrIsHeld,
  },
  {
    name: "handledMeansOver",
    says: 'With ack: "handled" a delivery is answered 200 only once its event is done, stale, discarded or held.',
    broken: handledMeansOver,
  },
  {
    name: "doneMeansRun",
    says: "An event is done only after each handler that its process has for it has returned.",
    broken: doneMeansRun,
  },
  {
    name: "noSecondEndInSilence",
    says: "A handler that returned is called again only if its lease was over before its end was stored, its time was up, or the store lost the record; and but for a loss, a notice tells so before the call.",
    broken: noSecondEndInSilence,
  },
  {
    name: "effectsExactlyOnce",
    says: "An effect is never committed twice, and a handler that is done has committed its own, in this run or an earlier one.",
    broken: effectsExactlyOnce,
  },
  {
    name: "onceMeansOnce",
    says: 'A handler with onCrash: "hold" is not called again after a call that did not fail, unless a person decides so or the store lost the record.',
    broken: onceMeansOnce,
  },
  {
    name: "doubleRiskHasACause",
    says: "There is a double-risk notice only if a process died, stood still, closed, lost the store or had a wrong clock, or a handler's time was up.",
    broken: doubleRiskHasACause,
  },
  {
    name: "oneHandlerOfATransactionAtATime",
    says: "Handlers of one transaction do not overlap while leases hold.",
    broken: oneHandlerOfATransactionAtATime,
  },
  {
    name: "calledUnderItsLease",
    says: "When a handler is called, the store has its process's lease.",
    broken: calledUnderItsLease,
  },
  {
    name: "ownersWriteAlone",
    says: "As long as a lease holds, only its owner changes the state of its slot.",
    broken: ownersWriteAlone,
  },
  {
    name: "noPendingAfterTheEnd",
    says: "After a handler of SUCCESS or FAILED was called, no PENDING handler of that transaction is called.",
    broken: noPendingAfterTheEnd,
  },
  {
    name: "heldStaysHeld",
    says: "A held entry stays until a person decides, or a later event of its subject begins: it is neither lost nor revived by copies.",
    broken: heldStaysHeld,
  },
  {
    name: "heldForAReason",
    says: "Before an event is held as crashed, rejected or exhausted, a handler of it was called and died, rejected or failed.",
    broken: heldForAReason,
  },
  {
    name: "answersFollowTheTable",
    says: "Each event is recorded as the table of deduplication says, in the order of the store's writes.",
    broken: tableDisagrees,
  },
  {
    name: "latestEventCounts",
    says: "Every handler of an event of a subject is called under the lease of that subject, and none after a handler of a later event, unless the store lost the subject.",
    broken: olderAfterLatest,
  },
  {
    name: "oneSuccessPerReference",
    says: "Handlers of a SUCCESS are called for two transactions with one reference only if the first one's record has expired, the store lost it or the claim, a store without replicas lost the end of the second one, or a person replayed one that was held as reference-reused.",
    broken: secondSuccess,
  },
  {
    name: "everythingComesToRest",
    says: "Once nothing goes wrong any more, every event is acknowledged, and nothing waits or runs for ever.",
    broken: everythingComesToRest,
  },
  {
    name: "closeEnds",
    says: "A process closes within its grace, and sends nothing to its store afterwards.",
    broken: closeEnds,
  },
];

/** The first invariant that a history breaks, and how. */
export function violationOf(
  chronicle: Chronicle,
): { readonly invariant: string; readonly how: string } | null {
  for (const { name, broken } of INVARIANTS) {
    const how = broken(chronicle);
    if (how !== null) return { invariant: name, how };
  }
  return null;
}
