import { isFinished } from "../../packages/core/src/inbox/record/record.ts";
import type { Chronicle, Fault, HandlerCall, Write } from "./chronicle.ts";
import { BLOWS } from "./faults.ts";
import { LATE_MS } from "./store-link.ts";

/** Whether the store lost this record between two times. */
export function lostBetween({ losses }: Chronicle, key: string, from: number, to: number): boolean {
  return losses.some((loss) => loss.at >= from && loss.at <= to && loss.keys.has(key));
}

/**
 * The last write of a record as it was at a time; null if there was none. A record that was forgotten, and written anew since, is
 * another one. With `until`, later writes do not count.
 */
export function lastWriteOf(
  { writes }: Chronicle,
  key: string,
  at: number,
  until: number = Number.POSITIVE_INFINITY,
): Write | null {
  let last: Write | null = null;
  for (const write of writes) {
    if (write.key !== key || write.at > until) continue;
    if (last !== null && write.at > at && write.before === null) break;
    last = write;
  }
  return last;
}

/** Whether the store may have forgotten a record: nothing in it was unfinished, and its time was over. */
export function hasExpired({ after }: Write, now: number): boolean {
  return isFinished(after) && after.expiresAt <= now;
}

/** When the run began that a handler was called in. */
export function begunAt({ begins }: Chronicle, { token, from }: HandlerCall): number {
  return (token === null ? undefined : begins.get(token)?.at) ?? from;
}

/** The write by which a second run began although the lease of the first was not given back: it was over by then. */
export function lapseOf({ writes }: Chronicle, first: HandlerCall, second: HandlerCall): Write | null {
  if (first.token === null) return null;
  return (
    writes.find(({ key, before, after, now, at }) => {
      if (key !== first.key || at > Math.max(first.from, second.from)) return false;
      const lease = before?.lease;
      if (lease === null || lease === undefined || lease.token !== first.token) return false;
      if (after.lease?.token === first.token) return false;
      return lease.until <= now || lease.until - now > lease.lengthMs + 5_000;
    }) ?? null
  );
}

/** What takes from a process what it needs to keep a lease. */
const GRAVE: ReadonlySet<Fault["what"]> = new Set([...BLOWS, "late"]);
/** What concerns every process. */
const EVERYBODY: ReadonlySet<Fault["what"]> = new Set([
  "store-clock-back",
  "store-clock-forward",
  "store-down",
  "failover",
  "lose-all",
]);
/** A call is on its way to the store for no longer, unless it is late. */
const LONGEST_WAY_MS = 2.5;

/**
 * Whether something grave has happened to one of those who ran this event, or to everybody, since the runs began that are in
 * doubt.
 */
export function isExplained(chronicle: Chronicle, eventId: string, process: string, at: number): boolean {
  const { decisions, writes, faults } = chronicle;
  // Whoever tells about a held entry that somebody decides about loses it.
  if (decisions.some((decision) => decision.eventId === eventId && decision.at <= at)) return true;
  const key = eventId.slice(0, 32);
  // What is lost leaves leases behind that had been given back.
  if (lostBetween(chronicle, key, 0, at)) return true;
  const own = writes.filter((write) => write.key === key && write.at <= at);
  // Since nothing of it was marked as started: whoever gave it back unstarted has left it as it was.
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
  // What a newer version has written, an older one cannot keep: it no longer reads what it runs.
  if (own.some(({ isNewFormat, at: writtenAt }) => isNewFormat && writtenAt >= since)) return true;
  const concerned = new Set([process, ...[...doubtful].map((write) => write.process)]);
  if ([...doubtful].some((write) => hadWrongClock(chronicle, write.process, write.at, at))) return true;
  return faults.some((fault) => {
    if (fault.at > at || fault.until < since) return false;
    return GRAVE.has(fault.what) && (EVERYBODY.has(fault.what) || concerned.has(fault.process));
  });
}

function hasStarted(slot: Write["after"]["slots"][string] | undefined): boolean {
  return Object.values(slot?.work?.steps ?? {}).some(({ state }) => state === "started");
}

function isBegin({ before, after }: Write): boolean {
  return after.lease !== null && after.lease.token !== before?.lease?.token;
}

/**
 * A store's clock that jumps ends leases early. A machine that slept, or whose store answered late, knows that clock only as it
 * was, and so writes leases that end early.
 */
function hadWrongClock(chronicle: Chronicle, process: string, begunAt: number, until: number): boolean {
  // What was late when the run was begun has made its lease shorter; what comes later has not.
  const had = (what: Fault["what"]): boolean => has(chronicle, what, process, begunAt - LONGEST_WAY_MS);
  return couldNotTellTime(chronicle, process, until) || had("sleep") || had("late");
}

/** Nothing tells a process that time has passed if its machine slept and its wall clock was set back, or if the store's clock jumped. */
export function couldNotTellTime(chronicle: Chronicle, process: string, until: number): boolean {
  return (
    chronicle.faults.some(({ what, at }) => what.startsWith("store-clock") && at <= until) ||
    (has(chronicle, "sleep", process, until) && has(chronicle, "wall-back", process, until))
  );
}

function has({ faults }: Chronicle, what: Fault["what"], process: string, by: number): boolean {
  return faults.some((fault) => fault.what === what && fault.process === process && fault.at <= by);
}
