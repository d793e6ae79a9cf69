import { isFinished } from "../../packages/core/src/inbox/record/record.ts";
import type { Chronicle, Fault, HandlerCall, Write } from "./chronicle.ts";
import { SYSTEM_FAULTS } from "./faults.ts";
import { LATE_MS } from "./store-link.ts";

/** True if the store lost this record between two times. */
export function lostBetween({ losses }: Chronicle, key: string, from: number, to: number): boolean {
  return losses.some((loss) => loss.at >= from && loss.at <= to && loss.keys.has(key));
}

/**
 * The last write of a record as it was at a time; null if there was none. A record that was forgotten and written again is another
 * record. A write that a failover has taken back does not count. With `until`, later writes and failovers do not count.
 */
export function lastWriteOf(
  { writes, losses }: Chronicle,
  key: string,
  at: number,
  until: number = Number.POSITIVE_INFINITY,
): Write | null {
  const failovers = losses.filter((loss) => !loss.isEverything && loss.keys.has(key) && loss.at <= until);
  let last: Write | null = null;
  for (const write of writes) {
    if (write.key !== key || write.at > until) continue;
    if (failovers.some((loss) => write.at >= loss.since && write.at <= loss.at)) continue;
    if (last !== null && write.at > at && write.before === null) break;
    last = write;
  }
  return last;
}

/** True if the store may have forgotten a record: nothing in it was unfinished, and its time was over. */
export function hasExpired({ after }: Write, now: number): boolean {
  return isFinished(after) && after.expiresAt <= now;
}

/** The time at which the run of a call began. */
export function begunAt({ begins }: Chronicle, { token, from }: HandlerCall): number {
  return (token === null ? undefined : begins.get(token)?.at) ?? from;
}

/** The write by which a second run began after the lease of the first run had lapsed; null if that lease was given back. */
export function lapseOf({ writes }: Chronicle, first: HandlerCall, second: HandlerCall): Write | null {
  if (first.token === null) return null;
  return (
    writes.find(({ key, before, after, now, at }) => {
      if (key !== first.key || at > Math.max(first.from, second.from)) return false;
      const lease = before?.lease;
      if (lease === null || lease === undefined || lease.token !== first.token) return false;
      if (after.lease?.token === first.token) return false;
      return lease.until <= now || lease.until - now > lease.originalLengthMs + 5_000;
    }) ?? null
  );
}

/** Faults because of which a process may lose a lease. */
const GRAVE: ReadonlySet<Fault["what"]> = new Set([...SYSTEM_FAULTS, "late"]);
/** Faults that every process suffers from. */
const EVERYBODY: ReadonlySet<Fault["what"]> = new Set([
  "store-clock-back",
  "store-clock-forward",
  "store-down",
  "failover",
  "lose-all",
]);
/** The longest way of a call to the store, unless a fault makes it late. */
const LONGEST_WAY_MS = 2.5;

/**
 * True if a fault explains that a handler may run twice: it happened to a process that ran this event, or to all processes, after
 * one of the runs in doubt had begun.
 */
export function isExplained(chronicle: Chronicle, eventId: string, process: string, at: number): boolean {
  const { decisions, writes, faults } = chronicle;
  // A decision takes the lease from the process that is calling onHeld handlers.
  if (decisions.some((decision) => decision.eventId === eventId && decision.at <= at)) return true;
  const key = eventId.slice(0, 32);
  // After a store loses writes, a lease that had ended may be there again.
  if (lostBetween(chronicle, key, 0, at)) return true;
  const own = writes.filter((write) => write.key === key && write.at <= at);
  // The runs in doubt came after the last write in which no handler of the event had started.
  const idle = own.findLastIndex(({ after }) => !hasStarted(after.slots[eventId.slice(32)]));
  const begins = own.filter(isBegin);
  // The start of a handler may have a write of its own, under a lease that began before.
  const leaseThen = own[idle]?.after.lease?.token;
  const holder = begins.findLast(({ after }) => leaseThen !== undefined && after.lease?.token === leaseThen);
  const doubtful = new Set([...begins.slice(-2), ...own.slice(Math.max(0, idle)).filter(isBegin)]);
  if (holder !== undefined) doubtful.add(holder);
  const last = begins.findLast((write) => write.process === process);
  if (last !== undefined) doubtful.add(last);
  // A begin is sent again for as long as its lease, and may land late.
  const sentMs = chronicle.plan.leaseMs + Math.max(...LATE_MS);
  const since = Math.min(at, ...[...doubtful].map((write) => write.at)) - sentMs;
  // A process of the old version cannot keep a run once a newer version has written the record, since it cannot read it.
  if (own.some(({ isNewFormat, at: writtenAt }) => isNewFormat && writtenAt >= since)) return true;
  const concerned = new Set([process, ...[...doubtful].map((write) => write.process)]);
  if ([...doubtful].some((write) => hadWrongClock(chronicle, write.process, write.at, at))) return true;
  return faults.some((fault) => {
    if (fault.at > at || fault.until < since) return false;
    return GRAVE.has(fault.what) && (EVERYBODY.has(fault.what) || concerned.has(fault.process));
  });
}

function hasStarted(slot: Write["after"]["slots"][string] | undefined): boolean {
  return Object.values(slot?.work?.handlerStates ?? {}).some(({ state }) => state === "started");
}

function isBegin({ before, after }: Write): boolean {
  return after.lease !== null && after.lease.token !== before?.lease?.token;
}

/**
 * A store's clock that jumps ends leases early. A machine that slept, or whose store answered late, knows that clock only as it
 * was, and so writes leases that end early.
 */
function hadWrongClock(chronicle: Chronicle, process: string, begunAt: number, until: number): boolean {
  // Only a fault before the begin of the run can make its lease shorter.
  const had = (what: Fault["what"]): boolean => has(chronicle, what, process, begunAt - LONGEST_WAY_MS);
  return couldNotTellTime(chronicle, process, until) || had("sleep") || had("late");
}

/**
 * True if a process could not notice that time had passed: its machine slept and its wall clock was set back, or the store's
 * clock jumped.
 */
export function couldNotTellTime(chronicle: Chronicle, process: string, until: number): boolean {
  return (
    chronicle.faults.some(({ what, at }) => what.startsWith("store-clock") && at <= until) ||
    (has(chronicle, "sleep", process, until) && has(chronicle, "wall-back", process, until))
  );
}

function has({ faults }: Chronicle, what: Fault["what"], process: string, by: number): boolean {
  return faults.some((fault) => fault.what === what && fault.process === process && fault.at <= by);
}
