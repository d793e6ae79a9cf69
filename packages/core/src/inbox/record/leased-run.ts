import type { EventFacts } from "../../notices/notice.ts";
import type { FlowName } from "../../protocol/events.ts";
import { overtake } from "./accept-into-record.ts";
import type { SlotState } from "./event.ts";
import { type HandlerChange, type HandlerState, ON_HELD_PREFIX } from "./handler-state.ts";
import type { Lane } from "./lane.ts";
import {
  addHistory,
  endSlot,
  type IdempotencyRecord,
  type OpenWork,
  referenceOf,
  type Slot,
} from "./record.ts";
import { type FinishedClaims, finishedClaimsOf, noteClaim } from "./reference-claim.ts";
import type { RunInput } from "./run-input.ts";
import type { RunOutcome } from "./run-outcome.ts";
import { dueTimeOf, findNextSlot, pullBackRecordTimes } from "./schedule.ts";
import { rankOf } from "./table.ts";

/** An event is begun early at most this often, however many copies ask for it. */
const EARLY_BEGIN_INTERVAL_MS = 1_000;

/** How to begin a run. */
export interface BeginOptions {
  /** The record's key. */
  readonly key: string;
  /** Identifies this run and no other. */
  readonly token: string;
  readonly leaseMs: number;
  /** The store's clock. */
  readonly now: number;
  /**
   * Skips the backoff. `requested`: a redelivery, or a person, wants a run now. This is granted at most once a second,
   * because anybody can send copies. `last`: there will be no later attempt, because the store ends with its process.
   */
  readonly earlyBecause: "requested" | "last" | null;
  /**
   * Called before a run begins for an event that may have killed its process. False if enough of these events run in this process
   * already.
   */
  readonly mayRunCrashSuspect: (suspicions: readonly CrashSuspicion[]) => boolean;
  /** The handler that this run starts with, if its start is to be written together with the lease; null otherwise. */
  readonly firstHandler: (input: RunInput) => string | null;
  /** The names of all handlers that this process has for the event. */
  readonly handlersOf: (input: RunInput) => readonly string[];
}

/** The result of beginning a run. */
export type BeginResult =
  | { readonly kind: "leased"; readonly input: RunInput }
  /** Done, stale, discarded, or held with its onHeld handlers done: there is nothing to run. */
  | { readonly kind: "finished"; readonly state: SlotState }
  /** Not now: this slot runs (`isRunning`), another slot of the record runs, or the backoff is not over. */
  | { readonly kind: "wait"; readonly isRunning: boolean }
  /** There is no such event. */
  | { readonly kind: "missing" };

const MISSING_RESULT: BeginResult = { kind: "missing" };
const NO_CLAIMS: readonly string[] = [];
const NO_SUSPICIONS: readonly CrashSuspicion[] = [];

/** Takes a lease on the slot. The record is changed in place, and only if the answer is `leased`. */
export function begin(record: IdempotencyRecord | null, slotKey: string, options: BeginOptions): BeginResult {
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined) return MISSING_RESULT;
  const { work } = slot;
  const { now, earlyBecause } = options;
  const isWanted =
    slot.state === "waiting" || slot.state === "running" || (slot.state === "held" && !slot.isOnHeldDone);
  if (!isWanted || work === null) return { kind: "finished", state: slot.state };
  pullBackRecordTimes(record, now);
  if (record.lease !== null && record.lease.until > now) {
    return { kind: "wait", isRunning: record.lease.slot === slotKey };
  }
  const isEarlyAllowed =
    earlyBecause === "last" || (earlyBecause === "requested" && mayBeginEarly(work, now));
  if (!isEarlyAllowed && work.dueAt > now) return { kind: "wait", isRunning: false };
  if (earlyBecause !== "last" && !mayRun(slot, work, options)) return { kind: "wait", isRunning: false };
  if (isEarlyAllowed && isEarly(work, now)) work.begunEarlyAt = now;
  endLapsedLease(record, now);
  return { kind: "leased", input: leaseSlot(record, slotKey, slot, work, isEarlyAllowed, options) };
}

/**
 * Takes a lease on the next slot that is due, if no process has a lease on the record. Even if nothing is due, the
 * record may change: times that a wrong clock has written are corrected.
 */
export function beginNext(record: IdempotencyRecord, options: BeginOptions): RunInput | null {
  pullBackRecordTimes(record, options.now);
  if (record.lease !== null && record.lease.until > options.now) return null;
  endLapsedLease(record, options.now);
  const next = findNextSlot(record, options.now);
  const slot = next === null ? undefined : record.slots[next];
  if (next === null || slot === undefined || slot.work === null) return null;
  if (!mayRun(slot, slot.work, options)) return null;
  return leaseSlot(record, next, slot, slot.work, false, options);
}

function leaseSlot(
  record: IdempotencyRecord,
  slotKey: string,
  slot: Slot,
  work: OpenWork,
  isEarlyAllowed: boolean,
  { key, token, leaseMs, now, firstHandler, handlersOf }: BeginOptions,
): RunInput {
  record.lease = { slot: slotKey, token, until: now + leaseMs, originalLengthMs: leaseMs };
  slot.runToken = token;
  // An event of a lower rank may have been running when the next status came. If its lease has lapsed since, it must
  // not run after that status.
  const isOvertaken = slot.rank !== null && slot.rank < rankOf(record);
  const overtaken = isOvertaken ? [] : overtake(record, key, now);
  const mode = slot.state === "held" ? "onHeld" : "run";
  if (mode === "run") slot.state = "running";
  const input: RunInput = {
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
    referenceId: referenceOf(record, slot),
    delivery: work.delivery,
    handlerStates: { ...work.handlerStates },
    untriedHandlers: work.untriedHandlers ?? [],
    claims: record.claims === undefined ? NO_CLAIMS : Object.keys(record.claims),
    onlyHandlers: work.onlyHandlers,
    evenIfExpired: work.evenIfExpired,
    replays: slot.replays,
    repeatEffects: work.repeatEffects === true,
    previousStatus: work.previousStatus,
    previousAmount: work.previousAmount,
    now,
    isEarlyAllowed,
    lastDelayMs: work.originalDelayMs,
    hadTurn: slot.subject?.hadTurn === true,
    startedHandler: null,
    trace: work.trace ?? null,
    overtaken,
  };
  const first = firstHandler(input);
  if (first !== null) {
    const attempt = (work.handlerStates[first]?.attempts ?? 0) + 1;
    applyChanges(work, [{ name: first, kind: "started", attempt }], now);
  }
  setUntriedHandlers(work, [...input.untriedHandlers, ...handlersOf(input)]);
  return { ...input, startedHandler: first };
}

/** Keeps the names of the handlers that have not been tried: another process may not have all of them. */
function setUntriedHandlers(work: OpenWork, handlers: readonly string[]): void {
  if (handlers.length === 0) return;
  const untried = new Set(handlers.filter((name) => work.handlerStates[name] === undefined));
  if (untried.size > 0) work.untriedHandlers = [...untried];
  else delete work.untriedHandlers;
}

/** A handler whose process died, or lost its lease, during an attempt that was not the first. */
export interface CrashSuspicion {
  readonly flow: FlowName;
  /** The event's name. */
  readonly event: string;
  readonly handler: string;
  /** How many attempts there were. */
  readonly attempts: number;
}

/**
 * The suspicions about an event that does not run now. The first attempt raises none, so that all events of a dead
 * process may begin elsewhere at once.
 */
function suspicionsIn(
  { name: event }: Slot,
  { handlerStates, delivery }: OpenWork,
): readonly CrashSuspicion[] {
  // This is called for each event that begins, and nearly none is suspected.
  let suspicions: CrashSuspicion[] | null = null;
  for (const name in handlerStates) {
    const state = handlerStates[name];
    if (state?.state !== "started" || state.attempts < 2) continue;
    suspicions ??= [];
    suspicions.push({ flow: delivery.flow, event, handler: name, attempts: state.attempts });
  }
  return suspicions ?? NO_SUSPICIONS;
}

function mayRun(slot: Slot, work: OpenWork, { mayRunCrashSuspect }: BeginOptions): boolean {
  const suspicions = suspicionsIn(slot, work);
  return suspicions.length === 0 || mayRunCrashSuspect(suspicions);
}

/** The suspicions about the events of a record. */
export function suspicionsOf({ slots }: IdempotencyRecord): readonly CrashSuspicion[] {
  return Object.values(slots).flatMap((slot) => (slot.work === null ? [] : suspicionsIn(slot, slot.work)));
}

function mayBeginEarly({ begunEarlyAt }: OpenWork, now: number): boolean {
  return begunEarlyAt === null || now - begunEarlyAt >= EARLY_BEGIN_INTERVAL_MS;
}

/** True if something that a run would try is not due yet. */
function isEarly(work: OpenWork, now: number): boolean {
  if (work.dueAt > now) return true;
  for (const name in work.handlerStates) if ((work.handlerStates[name]?.dueAt ?? 0) > now) return true;
  return false;
}

/** Ends a lease that has lapsed. Its owner has died, or cannot reach the store, so the slot waits again. */
function endLapsedLease(record: IdempotencyRecord, now: number): void {
  const slot = record.lease === null ? undefined : record.slots[record.lease.slot];
  if (slot?.state === "running") {
    slot.state = "waiting";
    if (slot.work !== null) addHistory(slot.work, { at: now, what: "lapsed" });
  }
  record.lease = null;
}

/** A run in progress, as its record knows it. */
interface LeasedSlot {
  readonly slot: Slot;
  readonly work: OpenWork;
}

/** The slot that runs under this token; null if another run has the lease by now. */
function findLeasedSlot(record: IdempotencyRecord | null, slotKey: string, token: string): LeasedSlot | null {
  const slot = record?.slots[slotKey];
  const lease = record?.lease ?? null;
  if (slot === undefined || slot.work === null || lease === null) return null;
  return lease.slot === slotKey && lease.token === token ? { slot, work: slot.work } : null;
}

/**
 * Extends the lease, counted from now. A lapsed lease still belongs to its owner until another run takes it. False if
 * another run has taken it.
 */
export function renew(
  record: IdempotencyRecord | null,
  { slot, token }: RunInput,
  leaseMs: number,
  now: number,
): boolean {
  if (record === null || findLeasedSlot(record, slot, token) === null || record.lease === null) return false;
  record.lease.until = now + leaseMs;
  record.lease.originalLengthMs = leaseMs;
  return true;
}

/** Writes new states of handlers. False if another run has the lease by now; then nothing is changed. */
export function writeHandlerChanges(
  record: IdempotencyRecord | null,
  { slot, token }: RunInput,
  changes: readonly HandlerChange[],
  now: number,
): boolean {
  const leased = findLeasedSlot(record, slot, token);
  if (leased === null) return false;
  applyChanges(leased.work, changes, now);
  return true;
}

/** Notes that the running event has claimed its reference. False if another run has the lease by now. */
export function writeClaim(
  record: IdempotencyRecord | null,
  { slot, token }: RunInput,
  claim: { readonly key: string; readonly claimToken: string },
): boolean {
  if (record === null || findLeasedSlot(record, slot, token) === null) return false;
  noteClaim(record, claim.key, claim.claimToken);
  return true;
}

function applyChanges(work: OpenWork, changes: readonly HandlerChange[], now: number): void {
  const handlers = [...(work.untriedHandlers ?? [])];
  for (const change of changes) {
    noteAttempt(work, change, now);
    if (change.kind === "undone" && change.before === null) {
      delete work.handlerStates[change.name];
      handlers.push(change.name);
    } else work.handlerStates[change.name] = stateAfter(work.handlerStates[change.name], change, now);
  }
  setUntriedHandlers(work, handlers);
}

const MAX_ERROR_CHARS = 200;
/** A handler's error may have any length. */
const MAX_DETAIL_CHARS = 2_000;

/**
 * Adds a failed attempt to the event's history. It adds the attempt once, even if the same change is applied a second
 * time. An attempt that does not count is left out: while an event waits for a database, such attempts would fill its
 * history.
 */
function noteAttempt(work: OpenWork, change: HandlerChange, now: number): void {
  if (change.kind !== "failed" && change.kind !== "given-up") return;
  const { name, kind, attempt, error } = change;
  const stateBefore = work.handlerStates[name];
  if (stateBefore?.state === kind && stateBefore.attempts === attempt) return;
  if (stateBefore?.state === "started" && stateBefore.attempts > attempt) return;
  const what = kind === "failed" ? "failed" : `given up: ${change.reason}`;
  addHistory(work, { at: now, what, handler: name, attempt, error: error.slice(0, MAX_ERROR_CHARS) });
}

const NEVER_TRIED_STATE: HandlerState = {
  attempts: 0,
  state: "failed",
  dueAt: 0,
  delayWhenWrittenMs: 0,
  error: null,
  reason: null,
};

/**
 * The state after a change. Applying the same change twice gives the same state, because a write may have been made
 * although its answer was lost.
 */
function stateAfter(before: HandlerState | undefined, change: HandlerChange, now: number): HandlerState {
  if (change.kind === "undone") return change.before ?? NEVER_TRIED_STATE;
  const { kind, attempt } = change;
  return {
    attempts: attempt,
    state: kind,
    dueAt: kind === "failed" ? now + change.delayMs : 0,
    delayWhenWrittenMs: kind === "failed" ? change.delayMs : 0,
    error:
      kind === "failed" || kind === "given-up"
        ? change.error.slice(0, MAX_DETAIL_CHARS)
        : (before?.error ?? null),
    reason: kind === "given-up" ? change.reason : null,
    ...(kind === "done" && change.skipped !== undefined ? { skipped: change.skipped } : {}),
  };
}

/**
 * True if a person has replayed or discarded a held event while its onHeld handlers were called. No further onHeld
 * handler is called then.
 */
export function wasDecidedMeanwhile(record: IdempotencyRecord | null, { mode, slot }: RunInput): boolean {
  const state = record?.slots[slot]?.state;
  return mode === "onHeld" && state !== undefined && state !== "held";
}

/** What ending a run has changed in its record, or that the lease was lost. What the run has come to is its `RunOutcome`. */
export type EndResult =
  /** Another run may have the event by now. Nothing has changed. */
  | { readonly kind: "lost" }
  | {
      readonly kind: "ended";
      readonly overtaken: readonly EventFacts[];
      /** The claims of the record, if everything in it is finished after this run. */
      readonly claimsToClose: FinishedClaims | null;
      /** When this or another event of the record falls due; null for never. */
      readonly nextDue: { readonly inMs: number; readonly lane: Lane } | null;
    };

/**
 * The token of a slot after the run with this token has ended. If the answer to the last write was lost, this token
 * shows whether the write was made.
 */
const endedTokenOf = (token: string): string => `${token}.`;

/** True if this run was the last to take the slot, whether it has ended since or not. */
export function isBegunBy(record: IdempotencyRecord | null, { slot, token }: RunInput): boolean {
  const runToken = record?.slots[slot]?.runToken;
  return runToken === token || runToken === endedTokenOf(token);
}

/** Ends a run, and applies the last states of its handlers. `hadTurn`: it was the latest event of its subject. */
export function endRun(
  record: IdempotencyRecord | null,
  { key, slot: slotKey, token }: RunInput,
  outcome: RunOutcome,
  changes: readonly HandlerChange[],
  now: number,
  hadTurn = false,
): EndResult {
  if (record?.slots[slotKey]?.runToken === endedTokenOf(token)) {
    return endedResult(record, [], now);
  }
  const leased = findLeasedSlot(record, slotKey, token);
  if (record === null || leased === null) return { kind: "lost" };
  const { slot, work } = leased;
  applyChanges(work, changes, now);
  record.lease = null;
  slot.runToken = endedTokenOf(token);
  if (hadTurn && slot.subject !== undefined) slot.subject = { ...slot.subject, hadTurn };
  switch (outcome.kind) {
    case "done":
    case "stale":
      endSlot(record, slot, { at: now, what: outcome.kind });
      break;
    case "retry":
      waitAgain(slot, work, outcome.delayMs, now);
      break;
    case "held":
      slot.state = "held";
      slot.isOnHeldDone = outcome.onHeld.length === 0;
      work.reason = outcome.reason;
      work.detail = outcome.detail?.slice(0, MAX_DETAIL_CHARS) ?? null;
      work.heldAt = now;
      work.dueAt = now;
      work.originalDelayMs = 0;
      work.handlerStates = Object.fromEntries(
        Object.entries(work.handlerStates).filter(([name]) => !name.startsWith(ON_HELD_PREFIX)),
      );
      setUntriedHandlers(work, outcome.onHeld);
      addHistory(work, { at: now, what: `held: ${outcome.reason}` });
      break;
    case "stays-held":
      slot.isOnHeldDone = true;
      break;
    case "handed-back":
      // Without a delay, the due time stays the same. So the event keeps its place in the queue.
      if (outcome.delayMs !== undefined) waitAgain(slot, work, outcome.delayMs, now);
      else if (slot.state === "running") slot.state = "waiting";
      break;
  }
  return endedResult(record, overtake(record, key, now), now);
}

function endedResult(record: IdempotencyRecord, overtaken: readonly EventFacts[], now: number): EndResult {
  const dueTime = dueTimeOf(record);
  const nextDue = dueTime === null ? null : { inMs: dueTime.at - now, lane: dueTime.lane };
  return { kind: "ended", overtaken, claimsToClose: finishedClaimsOf(record), nextDue };
}

function waitAgain(slot: Slot, work: OpenWork, delayMs: number, now: number): void {
  if (slot.state === "running") slot.state = "waiting";
  work.dueAt = now + delayMs;
  work.originalDelayMs = delayMs;
}
