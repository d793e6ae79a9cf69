/**
 * The idempotency record and everything that can happen to it, as functions without I/O.
 *
 *     (nothing) --accept--> claimed --markQueued--> queued      `queued` is a flag beside the state
 *
 *     waiting --begin--> running --finish--> done
 *        ^                  |  |
 *        |<-----retry-------'  '-----------> held --tell--> held (told)
 *        |<--------------replay---------------'  '--------> discarded
 *        '--(PENDING under a terminal status)--> stale
 *
 * Stores that keep records in this process's reach (memory, SQLite) call these functions inside their atomic step;
 * others must do the same thing on their server. `docs/deduplication.md` has the table that `decide` follows.
 */
import { PayhooksError } from "../errors.ts";
import type { FlowName } from "../events.ts";
import { digestOf } from "./digest.ts";
import type {
  Accepted,
  AcceptOutcome,
  Begun,
  Decision,
  Ending,
  Held,
  HeldFilter,
  HeldReason,
  HistoryEntry,
  Job,
  Life,
  ReplayDecision,
  SlotState,
  Step,
  StepChange,
  StoredDelivery,
  VerifiedEvent,
} from "./inbox.ts";
import { isEntry, TELL_PREFIX } from "./inbox.ts";
import type { BeginOptions, Fenced } from "./store.ts";

/** One claimed event of a record. */
export interface Slot {
  readonly name: string;
  readonly status: string;
  /** Amounts that arrived, by source. */
  amounts: Readonly<Record<string, string>>;
  readonly verdict: "run" | HeldReason;
  queued: boolean;
  state: SlotState;
  /** Held and the onHeld handlers are through, or there were none. */
  told: boolean;
  replays: number;
  /** What it takes to run it; dropped at the end. */
  work: Work | null;
  /** Who discarded it, and why. */
  discarded?: HistoryEntry;
}

/** The part of a slot that lives until the slot is finished. */
interface Work {
  readonly delivery: StoredDelivery;
  /** How long the record is kept after the slot's end, in milliseconds. */
  readonly retentionMs: number;
  reason: HeldReason | null;
  detail: string | null;
  heldAt: number;
  dueAt: number;
  steps: Record<string, Step>;
  only: readonly string[] | null;
  readonly previousStatus: string | null;
  readonly previousAmount: string | null;
  history: HistoryEntry[];
}

/** The lease under which one slot of a record runs. */
interface RecordLease {
  readonly slot: string;
  readonly token: string;
  until: number;
}

/** One transaction, or one webhook, of one tenant. */
export interface IdempotencyRecord {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly id: string;
  /** The highest listed status, and its slot; null while nothing was claimed to run. */
  status: string | null;
  statusSlot: string | null;
  terminal: boolean;
  identity: Readonly<Record<string, string>>;
  /** Raised by every begin; part of each token. */
  fence: number;
  lease: RecordLease | null;
  slots: Record<string, Slot>;
  /** The greatest signed timestamp that was seen. */
  signedAt: number;
  /** When it may be forgotten, once nothing in it is unfinished. */
  expiresAt: number;
}

/** What the table says of an event, before anything is changed. */
interface Ruling {
  readonly row: "own-slot" | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;
  readonly outcome: Exclude<AcceptOutcome, "expired">;
  readonly slot: string;
  readonly verdict: "run" | HeldReason;
}

/** The table of deduplication. Rows in the order of `docs/deduplication.md`; rows 1 and 2 choose the slot. */
function decide(record: IdempotencyRecord | null, event: VerifiedEvent): Ruling {
  // Not an event of the table: an entry, or a name or status that the specification does not list.
  if (event.rank === null) {
    const slot = event.variantSlot();
    return (
      atSlot(record?.slots[slot], slot) ?? { row: "own-slot", outcome: "held", slot, verdict: event.verdict }
    );
  }
  if (record === null)
    return { row: 5, outcome: firstOutcome(event), slot: event.slot, verdict: event.verdict };
  if (differs(record.identity, event.identity)) return mismatch(1, record, event);
  const same = record.slots[event.slot];
  if (same !== undefined && amountDiffers(same, event)) return mismatch(2, record, event);
  const known = atSlot(same, event.slot);
  if (known !== null) {
    const overtaken = known.row === 3 && event.rank === 0 && record.terminal;
    return overtaken ? { ...known, outcome: "stale" } : known;
  }
  if (record.status === null)
    return { row: 5, outcome: firstOutcome(event), slot: event.slot, verdict: event.verdict };
  if (!record.terminal && event.rank === 1) {
    return {
      row: 6,
      outcome: event.verdict === "run" ? "progress" : "held",
      slot: event.slot,
      verdict: event.verdict,
    };
  }
  if (record.terminal && event.rank === 0)
    return { row: 7, outcome: "stale", slot: event.slot, verdict: "run" };
  return { row: 8, outcome: "held", slot: event.slot, verdict: "conflict" };
}

function firstOutcome(event: VerifiedEvent): "new" | "held" {
  return event.verdict === "run" ? "new" : "held";
}

/** Rows 3 and 4: the slot is there. It repeats the verdict that was made when it was claimed. */
function atSlot(slot: Slot | undefined, key: string): Ruling | null {
  if (slot === undefined) return null;
  return slot.queued
    ? { row: 4, outcome: "duplicate", slot: key, verdict: slot.verdict }
    : { row: 3, outcome: "resume", slot: key, verdict: slot.verdict };
}

function mismatch(row: 1 | 2, record: IdempotencyRecord, event: VerifiedEvent): Ruling {
  const slot = event.variantSlot();
  return atSlot(record.slots[slot], slot) ?? { row, outcome: "held", slot, verdict: "mismatch" };
}

function differs(known: Readonly<Record<string, string>>, given: Readonly<Record<string, string>>): boolean {
  for (const field in given) {
    const value = known[field];
    const other = given[field] ?? "";
    // A finished record may keep a long fact as its digest only.
    if (value !== undefined && value !== other && value !== digestOf(other)) return true;
  }
  return false;
}

function amountDiffers(slot: Slot, event: VerifiedEvent): boolean {
  const known = slot.amounts[event.delivery.source];
  return known !== undefined && event.amount !== null && known !== event.amount;
}

/** Whether the event claims its reference: only a SUCCESS that runs, or ran, does. */
export function claimsReference(record: IdempotencyRecord | null, event: VerifiedEvent): boolean {
  return event.referenceKey !== null && event.fresh && decide(record, event).verdict === "run";
}

/** What a store has to know to accept an event, beside its record. */
export interface AcceptContext {
  /** The store's clock. */
  readonly now: number;
  /** Another id has the reference already (`oneSuccessPerReference`). */
  readonly referenceReused: boolean;
  /** Throws where the store has no room for that outcome; nothing is changed then. */
  readonly admit?: (outcome: AcceptOutcome) => void;
}

/** The event with the verdict that it has once its reference was looked up. */
function judged(event: VerifiedEvent, referenceReused: boolean): VerifiedEvent {
  return referenceReused && event.verdict === "run" ? { ...event, verdict: "reference-reused" } : event;
}

/**
 * The atomic step: decides, and claims the slot. The record is changed in place; null makes a new one, which is
 * returned with the answer, or null when nothing is to be stored.
 */
export function accept(
  record: IdempotencyRecord | null,
  given: VerifiedEvent,
  { now, referenceReused, admit }: AcceptContext,
): { readonly record: IdempotencyRecord | null; readonly accepted: Accepted } {
  const event = judged(given, referenceReused);
  const ruling = decide(record, event);
  const slot = record?.slots[ruling.slot];
  const job: Job = { eventId: event.key + ruling.slot, replay: slot?.replays ?? 0 };
  if (slot === undefined && ruling.outcome !== "stale" && !event.fresh) {
    return {
      record: null,
      accepted: { outcome: "expired", job, pending: false, reason: null, previousAmount: null },
    };
  }
  admit?.(ruling.outcome);
  const changed = record ?? newRecord(event);
  extend(changed, event, now);
  if (ruling.outcome === "stale") {
    if (slot?.state === "waiting") end(changed, slot, "stale", now);
    return {
      record: changed,
      accepted: { outcome: "stale", job, pending: false, reason: null, previousAmount: null },
    };
  }
  if (slot !== undefined) return { record: changed, accepted: acceptCopy(slot, event, ruling, job) };
  return { record: changed, accepted: claim(changed, event, ruling, job, now) };
}

function newRecord(event: VerifiedEvent): IdempotencyRecord {
  return {
    flow: event.delivery.flow,
    tenant: event.delivery.tenant,
    id: event.id,
    status: null,
    statusSlot: null,
    terminal: false,
    identity: {},
    fence: 0,
    lease: null,
    slots: {},
    signedAt: 0,
    expiresAt: 0,
  };
}

function extend(record: IdempotencyRecord, event: VerifiedEvent, now: number): void {
  if (event.signedAt > record.signedAt) record.signedAt = event.signedAt;
  record.expiresAt = Math.max(record.expiresAt, Math.max(now, record.signedAt) + event.retentionMs);
}

function acceptCopy(slot: Slot, event: VerifiedEvent, ruling: Ruling, job: Job): Accepted {
  const { source } = event.delivery;
  let previousAmount: string | null = null;
  if (event.amount !== null && slot.amounts[source] === undefined) {
    previousAmount = Object.values(slot.amounts).find((amount) => amount !== event.amount) ?? null;
    slot.amounts = { ...slot.amounts, [source]: event.amount };
  }
  return {
    outcome: ruling.outcome,
    job,
    pending: ruling.outcome === "resume",
    reason: slot.state === "held" ? (slot.work?.reason ?? null) : null,
    previousAmount,
  };
}

function claim(
  record: IdempotencyRecord,
  event: VerifiedEvent,
  ruling: Ruling,
  job: Job,
  now: number,
): Accepted {
  const run = ruling.verdict === "run";
  const previousAmount = run ? amountBefore(record, event) : null;
  const previousStatus = run ? record.status : null;
  if (run) {
    record.status = event.status;
    record.statusSlot = ruling.slot;
    record.terminal = event.rank === 1;
    record.identity = { ...record.identity, ...event.identity };
  }
  const reason = ruling.verdict === "run" ? null : ruling.verdict;
  record.slots[ruling.slot] = {
    name: event.name,
    status: event.status,
    amounts: event.amount === null ? {} : { [event.delivery.source]: event.amount },
    verdict: ruling.verdict,
    queued: false,
    state: run ? "waiting" : "held",
    told: false,
    replays: 0,
    work: {
      delivery: event.delivery,
      retentionMs: event.retentionMs,
      reason,
      detail: reason === event.verdict ? event.detail : null,
      heldAt: run ? 0 : now,
      dueAt: 0,
      steps: {},
      only: null,
      previousStatus,
      previousAmount,
      history: [{ at: now, what: reason === null ? "accepted" : `held: ${reason}` }],
    },
  };
  return { outcome: ruling.outcome, job, pending: true, reason, previousAmount };
}

function amountBefore(record: IdempotencyRecord, event: VerifiedEvent): string | null {
  const before = record.statusSlot === null ? undefined : record.slots[record.statusSlot];
  if (before === undefined || event.amount === null) return null;
  const known = before.amounts[event.delivery.source] ?? Object.values(before.amounts)[0];
  return known === undefined || known === event.amount ? null : known;
}

/** True while the slot must not be forgotten. */
function isUnfinished(slot: Slot): boolean {
  return slot.state === "waiting" || slot.state === "running" || slot.state === "held";
}

/** True when nothing in the record is unfinished: it may be forgotten at its expiry. */
export function isFinished(record: IdempotencyRecord): boolean {
  return !Object.values(record.slots).some(isUnfinished);
}

/** Sets the flag that lets copies be acknowledged, unless the slot was replayed since. */
export function markQueued(record: IdempotencyRecord | null, slotKey: string, job: Job): void {
  const slot = record?.slots[slotKey];
  if (slot !== undefined && slot.replays === job.replay) slot.queued = true;
}

const NONE: ReadonlySet<string> = new Set();

/** Slots that a store's index of held entries has to name. */
export function heldSlots(record: IdempotencyRecord | null): ReadonlySet<string> {
  let held: Set<string> | null = null;
  for (const key in record?.slots) {
    if (record?.slots[key]?.state !== "held") continue;
    held ??= new Set();
    held.add(key);
  }
  return held ?? NONE;
}

/** Throws `ERR_HELD_FULL` when no further entry may be held at accept. */
export function checkHeldRoom(held: number, maxHeld: number): void {
  if (held < maxHeld) return;
  throw new PayhooksError("ERR_HELD_FULL", `${held} events are held, the bound.`, {
    fix: "Look at receiver.held.list(), replay or discard entries, or raise maxHeld.",
  });
}

/** Takes a slot under a lease. Changes the record unless the answer is `wait`, `finished` or `missing`. */
export function begin(
  record: IdempotencyRecord | null,
  slotKey: string,
  job: Job,
  { owner, leaseMs, force }: BeginOptions,
  now: number,
): Begun {
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined) return { kind: "missing" };
  const { work } = slot;
  const wanted =
    slot.state === "waiting" || slot.state === "running" || (slot.state === "held" && !slot.told);
  if (!wanted || work === null || slot.replays !== job.replay) {
    return { kind: "finished", state: slot.state, overtaken: null };
  }
  if (record.lease !== null && record.lease.until > now) {
    return { kind: "wait", ms: record.lease.until - now, running: record.lease.slot === slotKey };
  }
  if (isOvertaken(record, slot)) {
    end(record, slot, "stale", now);
    const { flow, tenant, id } = record;
    const overtaken = { flow, tenant, eventId: job.eventId, id, event: slot.name, status: slot.status };
    return { kind: "finished", state: "stale", overtaken };
  }
  if (!force && work.dueAt > now) return { kind: "wait", ms: work.dueAt - now, running: false };
  // A lease that lapsed was somebody's who never finished: his slot waits again.
  releaseLapsed(record);
  record.fence++;
  const token = `${record.fence}:${owner}`;
  record.lease = { slot: slotKey, token, until: now + leaseMs };
  const mode = slot.state === "held" ? "tell" : "run";
  if (mode === "run") slot.state = "running";
  return {
    kind: "leased",
    lease: {
      job,
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
      previousStatus: work.previousStatus,
      previousAmount: work.previousAmount,
      now,
      force,
    },
  };
}

/**
 * From the moment a terminal status is claimed, a waiting PENDING is stale, replays included. An entry that is
 * being released is not an event of the table yet: it will meet the table by itself.
 */
function isOvertaken(record: IdempotencyRecord, slot: Slot): boolean {
  return record.terminal && slot.status === "PENDING" && slot.state !== "held" && !isEntry(slot.verdict);
}

function releaseLapsed(record: IdempotencyRecord): void {
  const slot = record.lease === null ? undefined : record.slots[record.lease.slot];
  if (slot?.state === "running") slot.state = "waiting";
  record.lease = null;
}

/** From its end on a slot is only there to recognise copies, for as long as if it had just been delivered. */
function end(
  record: IdempotencyRecord,
  slot: Slot,
  state: "done" | "stale" | "discarded",
  now: number,
): void {
  const retentionMs = slot.work?.retentionMs ?? 0;
  record.expiresAt = Math.max(record.expiresAt, Math.max(now, record.signedAt) + retentionMs);
  slot.state = state;
  slot.work = null;
}

/** The slot that runs under this token, or null when the lease is somebody else's by now. */
function leased(
  record: IdempotencyRecord | null,
  slotKey: string,
  token: string,
): { slot: Slot; work: Work; lease: RecordLease } | null {
  const slot = record?.slots[slotKey];
  const lease = record?.lease ?? null;
  if (slot === undefined || slot.work === null || lease === null) return null;
  return lease.slot === slotKey && lease.token === token ? { slot, work: slot.work, lease } : null;
}

/** Prolongs the lease. A lease that lapsed but that nobody took is still its owner's. */
export function renew(
  record: IdempotencyRecord | null,
  slotKey: string,
  token: string,
  leaseMs: number,
  now: number,
): Fenced {
  const run = leased(record, slotKey, token);
  if (run === null) return "lost";
  run.lease.until = now + leaseMs;
  return "ok";
}

/** Records that a handler starts or has ended. */
export function step(
  record: IdempotencyRecord | null,
  slotKey: string,
  token: string,
  name: string,
  change: StepChange,
  now: number,
): Fenced {
  const run = leased(record, slotKey, token);
  if (run === null) return "lost";
  const before = run.work.steps[name];
  run.work.steps[name] = {
    tries: (before?.tries ?? 0) + (change.kind === "started" ? 1 : 0),
    state: change.kind,
    dueAt: change.kind === "failed" ? now + change.delayMs : 0,
    error: change.kind === "failed" || change.kind === "given-up" ? change.error : (before?.error ?? null),
    reason: change.kind === "given-up" ? change.reason : null,
  };
  return "ok";
}

/** Ends a run. `next` are the record's other jobs, which waited for this one. */
export function finish(
  record: IdempotencyRecord | null,
  slotKey: string,
  job: Job,
  token: string,
  ending: Ending,
  now: number,
): { readonly fenced: Fenced; readonly next: readonly Job[] } {
  const run = leased(record, slotKey, token);
  if (record === null || run === null) return { fenced: "lost", next: [] };
  const { slot, work } = run;
  record.lease = null;
  switch (ending.kind) {
    case "done":
      end(record, slot, "done", now);
      break;
    case "retry":
      if (slot.state === "running") slot.state = "waiting";
      work.dueAt = now + ending.delayMs;
      break;
    case "held":
      slot.state = "held";
      slot.told = !ending.tell;
      work.reason = ending.reason;
      work.detail = ending.detail;
      work.heldAt = now;
      work.dueAt = 0;
      work.steps = Object.fromEntries(
        Object.entries(work.steps).filter(([name]) => !name.startsWith(TELL_PREFIX)),
      );
      work.history.push({ at: now, what: `held: ${ending.reason}` });
      break;
    case "told":
      slot.told = true;
      break;
    case "released":
      if (slot.state === "running") slot.state = "waiting";
      break;
  }
  return { fenced: "ok", next: waitingBeside(record, slotKey, job.eventId) };
}

function waitingBeside(record: IdempotencyRecord, slotKey: string, eventId: string): readonly Job[] {
  const next: Job[] = [];
  for (const key in record.slots) {
    const other = record.slots[key];
    if (key === slotKey || other === undefined) continue;
    const waits = other.state === "waiting" || (other.state === "held" && !other.told);
    if (waits) next.push({ eventId: eventId.slice(0, 32) + key, replay: other.replays });
  }
  return next;
}

/** Makes a held slot wait again, as its next replay. One that waits for its job already is given out again. */
export function replay(
  record: IdempotencyRecord | null,
  slotKey: string,
  eventId: string,
  decision: ReplayDecision,
  now: number,
): Job | null {
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined || slot.work === null) return null;
  if (slot.state === "waiting" && slot.replays > 0 && !slot.queued) return { eventId, replay: slot.replays };
  if (slot.state !== "held") return null;
  const { work } = slot;
  const only = decision.handlers ?? null;
  // Whoever tells the onHeld handlers about it at this moment loses the lease.
  if (record.lease?.slot === slotKey) record.lease = null;
  slot.state = "waiting";
  slot.told = false;
  slot.queued = false;
  slot.replays++;
  work.dueAt = 0;
  work.only = only;
  work.steps = Object.fromEntries(
    Object.entries(work.steps).filter(
      ([name, kept]) => kept.state === "done" && !(only?.includes(name) ?? false),
    ),
  );
  work.history.push({ at: now, what: `replay ${slot.replays}`, by: decision.by, note: decision.note });
  return { eventId, replay: slot.replays };
}

/** Drops a held slot for good: copies stay duplicates. */
export function discard(
  record: IdempotencyRecord | null,
  slotKey: string,
  { by, note }: Decision,
  now: number,
): boolean {
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined || slot.state !== "held") return false;
  if (record.lease?.slot === slotKey) record.lease = null;
  slot.queued = true;
  slot.discarded = { at: now, what: "discarded", by, note };
  end(record, slot, "discarded", now);
  return true;
}

/** The slot's life, as far as the record still knows it. */
export function lifeOf(record: IdempotencyRecord, eventId: string, slot: Slot): Life {
  const { work } = slot;
  return {
    eventId,
    flow: record.flow,
    tenant: record.tenant,
    id: record.id,
    event: slot.name,
    status: slot.status,
    state: slot.state,
    reason: work?.reason ?? null,
    detail: work?.detail ?? null,
    replays: slot.replays,
    steps: { ...work?.steps },
    history: work?.history.slice() ?? (slot.discarded === undefined ? [] : [slot.discarded]),
  };
}

/** The slot as an entry of the held list, or null when it is not held. */
export function heldOf(record: IdempotencyRecord, eventId: string, slot: Slot): Held | null {
  const life = lifeOf(record, eventId, slot);
  if (life.state !== "held" || life.reason === null || slot.work === null) return null;
  const { heldAt, delivery } = slot.work;
  return { ...life, state: "held", reason: life.reason, heldAt, delivery };
}

/** True for an entry that a filter of the held list lets through. */
export function matchesFilter(entry: Held, { flow, tenant, reason }: HeldFilter): boolean {
  return (
    (flow === undefined || entry.flow === flow) &&
    (tenant === undefined || entry.tenant === tenant) &&
    (reason === undefined || entry.reason === reason)
  );
}
