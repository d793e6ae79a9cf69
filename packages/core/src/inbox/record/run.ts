import type { EventFacts } from "../../notices/notice.ts";
import { overtake } from "./accept.ts";
import type { SlotState } from "./event.ts";
import { type Ending, type LeaseData, type Step, type StepChange, TELL_PREFIX } from "./lease.ts";
import { addHistory, end, type IdempotencyRecord, type Slot, type Work } from "./record.ts";
import { nextSlot, pullBackTimes } from "./schedule.ts";

/** However many copies ask for it, an event is begun before its time no more often than this. */
const FORCED_EVERY_MS = 1_000;

/** How to begin a run. */
export interface BeginOptions {
  /** The record's key. */
  readonly key: string;
  /** Names this begin and no other. */
  readonly token: string;
  readonly leaseMs: number;
  /** The store's clock. */
  readonly now: number;
  /**
   * Skips the backoff. `asked`: a redelivery, or a person, wants it now; granted at most once a second, since copies are
   * anybody's to send. `last`: there will be no later try, since the store ends with its process.
   */
  readonly force: "asked" | "last" | null;
  /**
   * Asked before an event is taken whose last try ended with the death of its process: false where another such event runs
   * here, beside which it is not begun.
   */
  readonly mayRunInterrupted: () => boolean;
  /** The handler that this run starts with, if its start is to be written with the begin; null otherwise. */
  readonly firstStep: (data: LeaseData) => string | null;
}

/** The answer to a begin. */
export type Begun =
  | { readonly kind: "leased"; readonly lease: LeaseData }
  /** Done, stale, discarded, or held and told: nothing to run. */
  | { readonly kind: "finished"; readonly state: SlotState }
  /** A slot of the record runs, this one (`running`) or another, or the backoff is not over. */
  | { readonly kind: "wait"; readonly running: boolean }
  /** There is no such event. */
  | { readonly kind: "missing" };

const MISSING: Begun = { kind: "missing" };

/** Takes the slot under a lease. The record is changed in place, and only where the answer is `leased`. */
export function begin(record: IdempotencyRecord | null, slotKey: string, options: BeginOptions): Begun {
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined) return MISSING;
  const { work } = slot;
  const { now, force } = options;
  const wanted =
    slot.state === "waiting" || slot.state === "running" || (slot.state === "held" && !slot.told);
  if (!wanted || work === null) return { kind: "finished", state: slot.state };
  pullBackTimes(record, now);
  if (record.lease !== null && record.lease.until > now) {
    return { kind: "wait", running: record.lease.slot === slotKey };
  }
  const isForced = force === "last" || (force === "asked" && mayBeForced(work, now));
  if (!isForced && work.dueAt > now) return { kind: "wait", running: false };
  if (force !== "last" && wasInterrupted(work) && !options.mayRunInterrupted()) {
    return { kind: "wait", running: false };
  }
  if (isForced && isEarly(work, now)) work.forcedAt = now;
  releaseLapsed(record, now);
  return { kind: "leased", lease: take(record, slotKey, slot, work, isForced, options) };
}

/**
 * Takes the slot that is next, where one is due and no lease holds. The record is changed also where nothing is: times that a
 * wrong clock has written are pulled back.
 */
export function beginNext(record: IdempotencyRecord, options: BeginOptions): LeaseData | null {
  pullBackTimes(record, options.now);
  if (record.lease !== null && record.lease.until > options.now) return null;
  releaseLapsed(record, options.now);
  const next = nextSlot(record, options.now);
  const slot = next === null ? undefined : record.slots[next];
  if (next === null || slot === undefined || slot.work === null) return null;
  if (wasInterrupted(slot.work) && !options.mayRunInterrupted()) return null;
  return take(record, next, slot, slot.work, false, options);
}

function take(
  record: IdempotencyRecord,
  slotKey: string,
  slot: Slot,
  work: Work,
  force: boolean,
  { key, token, leaseMs, now, firstStep }: BeginOptions,
): LeaseData {
  record.lease = { slot: slotKey, token, until: now + leaseMs, lengthMs: leaseMs };
  slot.token = token;
  const mode = slot.state === "held" ? "tell" : "run";
  if (mode === "run") slot.state = "running";
  const lease: LeaseData = {
    key,
    slot: slotKey,
    eventId: key + slotKey,
    token,
    mode,
    verdict: slot.verdict,
    reason: work.reason,
    detail: work.detail,
    id: record.id,
    name: slot.name,
    status: slot.status,
    delivery: work.delivery,
    steps: { ...work.steps },
    only: work.only,
    evenIfExpired: work.evenIfExpired,
    replays: slot.replays,
    again: work.again === true,
    previousStatus: work.previousStatus,
    previousAmount: work.previousAmount,
    now,
    force,
    started: null,
  };
  const first = firstStep(lease);
  if (first === null) return lease;
  const before = work.steps[first];
  work.steps[first] = stepAfter(
    before,
    { name: first, kind: "started", attempt: (before?.tries ?? 0) + 1 },
    now,
  );
  return { ...lease, started: first };
}

/**
 * The process died while a handler of the event ran, or lost its lease, and it was not the handler's first try. After the
 * first one, what a process ran begins elsewhere all at once, so that nothing waits for long. Asked of an event that does not
 * run.
 */
function wasInterrupted({ steps }: Work): boolean {
  for (const name in steps) {
    const step = steps[name];
    if (step?.state === "started" && step.tries > 1) return true;
  }
  return false;
}

/** The same of any event of the record. */
export function hasInterrupted({ slots }: IdempotencyRecord): boolean {
  for (const key in slots) {
    const work = slots[key]?.work ?? null;
    if (work !== null && wasInterrupted(work)) return true;
  }
  return false;
}

function mayBeForced({ forcedAt }: Work, now: number): boolean {
  return forcedAt === null || now - forcedAt >= FORCED_EVERY_MS;
}

/** True when not everything that a run would try is due. */
function isEarly(work: Work, now: number): boolean {
  if (work.dueAt > now) return true;
  for (const name in work.steps) if ((work.steps[name]?.dueAt ?? 0) > now) return true;
  return false;
}

/** The owner of a lease that lapsed has died, or is out of reach: the slot that it ran waits again. */
function releaseLapsed(record: IdempotencyRecord, now: number): void {
  const slot = record.lease === null ? undefined : record.slots[record.lease.slot];
  if (slot?.state === "running") {
    slot.state = "waiting";
    if (slot.work !== null) addHistory(slot.work, { at: now, what: "lapsed" });
  }
  record.lease = null;
}

/** A run in progress, as its record knows it. */
interface Leased {
  readonly slot: Slot;
  readonly work: Work;
}

/** What runs under this token; null when the lease is another's by now. */
function leased(record: IdempotencyRecord | null, slotKey: string, token: string): Leased | null {
  const slot = record?.slots[slotKey];
  const lease = record?.lease ?? null;
  if (slot === undefined || slot.work === null || lease === null) return null;
  return lease.slot === slotKey && lease.token === token ? { slot, work: slot.work } : null;
}

/** Prolongs the lease, from now on. A lease that lapsed but that nobody took is still its owner's. False: it is not. */
export function renew(
  record: IdempotencyRecord | null,
  { slot, token }: LeaseData,
  leaseMs: number,
  now: number,
): boolean {
  if (record === null || leased(record, slot, token) === null || record.lease === null) return false;
  record.lease.until = now + leaseMs;
  record.lease.lengthMs = leaseMs;
  return true;
}

/** Writes how handlers stand. False: the lease is another's by now, and nothing was changed. */
export function writeSteps(
  record: IdempotencyRecord | null,
  { slot, token }: LeaseData,
  changes: readonly StepChange[],
  now: number,
): boolean {
  const run = leased(record, slot, token);
  if (run === null) return false;
  apply(run.work, changes, now);
  return true;
}

function apply(work: Work, changes: readonly StepChange[], now: number): void {
  for (const change of changes) {
    tellTry(work, change, now);
    if (change.kind === "undone" && change.before === null) delete work.steps[change.name];
    else work.steps[change.name] = stepAfter(work.steps[change.name], change, now);
  }
}

const MAX_ERROR = 200;

/** Adds a try that failed to the event's life, once: the same change may be applied a second time. */
function tellTry(work: Work, change: StepChange, now: number): void {
  if (change.kind !== "failed" && change.kind !== "given-up") return;
  const { name, kind, attempt, error } = change;
  const before = work.steps[name];
  if (before?.state === kind && before.tries === attempt) return;
  const what = kind === "failed" ? "failed" : `given up: ${change.reason}`;
  addHistory(work, { at: now, what, handler: name, attempt, error: error.slice(0, MAX_ERROR) });
}

const NEVER_TRIED: Step = { tries: 0, state: "failed", dueAt: 0, dueInMs: 0, error: null, reason: null };

/** The same whether the step has the change already or not: a write may have been made, and only its answer lost. */
function stepAfter(before: Step | undefined, change: StepChange, now: number): Step {
  if (change.kind === "undone") return change.before ?? NEVER_TRIED;
  const { kind, attempt } = change;
  return {
    tries: attempt,
    state: kind,
    dueAt: kind === "failed" ? now + change.delayMs : 0,
    dueInMs: kind === "failed" ? change.delayMs : 0,
    error: kind === "failed" || kind === "given-up" ? change.error : (before?.error ?? null),
    reason: kind === "given-up" ? change.reason : null,
  };
}

/** The answer to the end of a run. */
export type Finished =
  | { readonly kind: "lost" }
  | { readonly kind: "ended"; readonly overtaken: readonly EventFacts[] };

/** Marks the slot as ended by the run with this token: a write whose answer was lost is recognised by it. */
const ended = (token: string): string => `${token}.`;

/** True when the slot was last taken by this very begin, whether its run has ended since or not. */
export function isBegunBy(record: IdempotencyRecord | null, { slot, token }: LeaseData): boolean {
  const found = record?.slots[slot]?.token;
  return found === token || found === ended(token);
}

/** Ends a run, with what its last handlers have come to. */
export function finish(
  record: IdempotencyRecord | null,
  { key, slot: slotKey, token }: LeaseData,
  ending: Ending,
  changes: readonly StepChange[],
  now: number,
): Finished {
  if (record?.slots[slotKey]?.token === ended(token)) return { kind: "ended", overtaken: [] };
  const run = leased(record, slotKey, token);
  if (record === null || run === null) return { kind: "lost" };
  const { slot, work } = run;
  apply(work, changes, now);
  record.lease = null;
  slot.token = ended(token);
  switch (ending.kind) {
    case "done":
      end(record, slot, { at: now, what: "done" });
      break;
    case "retry":
      waitAgain(slot, work, ending.delayMs, now);
      break;
    case "held":
      slot.state = "held";
      slot.told = !ending.tell;
      work.reason = ending.reason;
      work.detail = ending.detail;
      work.heldAt = now;
      work.dueAt = now;
      work.dueInMs = 0;
      work.steps = Object.fromEntries(
        Object.entries(work.steps).filter(([name]) => !name.startsWith(TELL_PREFIX)),
      );
      addHistory(work, { at: now, what: `held: ${ending.reason}` });
      break;
    case "told":
      slot.told = true;
      break;
    case "released":
      // It is due since it was before, so that it keeps its turn.
      if (slot.state === "running") slot.state = "waiting";
      break;
  }
  return { kind: "ended", overtaken: overtake(record, key, now) };
}

function waitAgain(slot: Slot, work: Work, delayMs: number, now: number): void {
  if (slot.state === "running") slot.state = "waiting";
  work.dueAt = now + delayMs;
  work.dueInMs = delayMs;
}
