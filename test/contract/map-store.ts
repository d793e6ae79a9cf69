import {
  createInbox,
  decodeRecord,
  type EventFilter,
  type EventLabels,
  encodeRecord,
  type HeldReason,
  type Inbox,
  type RecordIndex,
  type RecordStore,
  type Swap,
  type SwapResult,
  type Versioned,
} from "@payhooks/core/inbox";

/** A record as it lies here. */
interface Row {
  readonly key: string;
  readonly version: string;
  readonly text: string;
  readonly index: RecordIndex;
  /** When somebody has to look at it: when it is due, or when it comes out of hiding. */
  lookAt: number;
}

export function mapStore(now: () => number): RecordStore {
  const rows = new Map<string, Row>();
  const isExpired = ({ index }: Row): boolean => index.expiresAt !== null && index.expiresAt <= now();
  const versioned = ({ version, text }: Row): Versioned => ({ version, record: decodeRecord(text) });

  function find(key: string): Row | null {
    const row = rows.get(key);
    return row === undefined || isExpired(row) ? null : row;
  }

  function write({ key, expected, version, record, index, at }: Swap): SwapResult {
    const row = find(key);
    const isComputedNow = at <= now() && at >= now() - 5_000;
    if (!isComputedNow || (row?.version ?? null) !== expected) {
      return { kind: "conflict", current: row && versioned(row) };
    }
    const lookAt = index.dueAt ?? Number.POSITIVE_INFINITY;
    rows.set(key, { key, version, text: encodeRecord(record), index, lookAt });
    return { kind: "written" };
  }

  const inOrder = (): Row[] => [...rows.values()].sort((a, b) => a.lookAt - b.lookAt);
  const due = (): Row[] => inOrder().filter(({ lookAt }) => lookAt <= now());

  return {
    durability: "process",
    endsWithProcess: true,
    identity: crypto.randomUUID(),
    open: async () => {},
    read: (keys) => keys.map(find).map((row) => row && versioned(row)),
    swap: (writes) => writes.map(write),
    takeDue(limit, hideMs) {
      const taken = due().slice(0, limit);
      for (const row of taken) row.lookAt = now() + Math.max(1, hideMs);
      const records = taken.map((row) => ({ key: row.key, ...versioned(row) }));
      const nextDueAt =
        inOrder().find(({ lookAt }) => lookAt > now() && Number.isFinite(lookAt))?.lookAt ?? null;
      return { records, left: due().length, nextDueAt };
    },
    now,
    async list(filter, cursor, limit) {
      const events = [...rows.values()]
        .flatMap((row) => row.index.events.map((event) => ({ event, versioned: versioned(row) })))
        .filter(({ event }) => passes(event, filter) && (cursor === null || place(event) > place(cursor)))
        .map(({ event: { eventId, acceptedAt }, versioned }) => ({ eventId, acceptedAt, versioned }))
        .sort((a, b) => (place(a) < place(b) ? -1 : 1));
      const page = events.slice(0, limit);
      return { events: page, next: events.length > limit ? (page.at(-1) ?? null) : null };
    },
    counts() {
      const events = [...rows.values()].flatMap(({ index }) => index.events);
      const inState = (state: EventLabels["state"]): number =>
        events.filter((event) => event.state === state).length;
      const heldBy: Partial<Record<HeldReason, number>> = {};
      for (const { reason } of events) if (reason !== null) heldBy[reason] = (heldBy[reason] ?? 0) + 1;
      const [waiting, retrying] = [inState("waiting"), inState("retrying")];
      const oldestDueAt = due()[0]?.lookAt ?? null;
      return { waiting, retrying, running: inState("running"), held: inState("held"), heldBy, oldestDueAt };
    },
    async prune() {
      for (const row of rows.values()) if (isExpired(row)) rows.delete(row.key);
      return false;
    },
    probe: async () => {},
    close: async () => {},
  };
}

/** Events sort by the time of their acceptance, then by their id. */
function place({ acceptedAt, eventId }: { readonly acceptedAt: number; readonly eventId: string }): string {
  return `${String(acceptedAt).padStart(16, "0")} ${eventId}`;
}

function passes(
  event: EventLabels,
  { since = 0, until = Number.POSITIVE_INFINITY, ...labels }: EventFilter,
): boolean {
  const fits = Object.entries(labels).every(
    ([name, label]) => label === undefined || event[name as keyof typeof labels] === label,
  );
  return event.state !== "done" && fits && event.acceptedAt >= since && event.acceptedAt < until;
}

export function mapInbox(): Inbox {
  return createInbox(mapStore(Date.now), { leaseMs: 30_000 });
}
