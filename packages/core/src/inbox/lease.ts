import type { Begun, Ending, Job, Step, StepChange } from "./inbox.ts";
import { isEntry, TELL_PREFIX } from "./inbox.ts";
import { end, type IdempotencyRecord, type RecordLease, type Slot, type Work } from "./record.ts";
import { referenceIdOf } from "./reference.ts";
import type { BeginOptions, Fenced, Finished } from "./store.ts";

/** However many copies ask for it, an event is begun before its time no more often than this. */
const FORCED_EVERY_MS = 1_000;

/** Takes a slot under a lease. Changes the record unless the answer is `wait`, `finished` or `missing`. */
export function begin(
  record: IdempotencyRecord | null,
  slotKey: string,
  job: Job,
  { owner, leaseMs, force: wish }: BeginOptions,
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
    const { name: event, status } = slot;
    const referenceId = referenceIdOf(work.delivery, slot.verdict);
    const overtaken = { flow, tenant, eventId: job.eventId, id, event, status, referenceId };
    return { kind: "finished", state: "stale", overtaken };
  }
  const force = wish === "last" || (wish === "asked" && isForcedAgain(work, now));
  if (!force && work.dueAt > now) return { kind: "wait", ms: work.dueAt - now, running: false };
  if (force && isEarly(work, now)) work.forcedAt = now;
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
      evenIfExpired: work.evenIfExpired,
      previousStatus: work.previousStatus,
      previousAmount: work.previousAmount,
      now,
      force,
    },
  };
}

function isForcedAgain({ forcedAt }: Work, now: number): boolean {
  return forcedAt === null || now - forcedAt >= FORCED_EVERY_MS;
}

/** True when not everything that a run would try is due. */
function isEarly(work: Work, now: number): boolean {
  return work.dueAt > now || Object.values(work.steps).some(({ dueAt }) => dueAt > now);
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
  run.work.steps[name] = stepAfter(run.work.steps[name], change, now);
  return "ok";
}

function stepAfter(before: Step | undefined, change: StepChange, now: number): Step {
  if (change.kind === "failed-early") return { ...change.before, error: change.error };
  return {
    tries: (before?.tries ?? 0) + (change.kind === "started" ? 1 : 0),
    state: change.kind,
    dueAt: change.kind === "failed" ? now + change.delayMs : 0,
    error: change.kind === "failed" || change.kind === "given-up" ? change.error : (before?.error ?? null),
    reason: change.kind === "given-up" ? change.reason : null,
  };
}

/** Ends a run. `next` are the record's other jobs, which waited for this one. */
export function finish(
  record: IdempotencyRecord | null,
  slotKey: string,
  job: Job,
  token: string,
  ending: Ending,
  now: number,
): Finished {
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
