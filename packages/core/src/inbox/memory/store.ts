import { type Clock, systemClock } from "../../clock.ts";
import { PayhooksError } from "../../errors.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import type { RecordIndex } from "../record/index-of.ts";
import type { Counts, DueRecord, RecordStore, SwapResult, Versioned } from "../store.ts";

/** Options of {@link memoryStore}. */
export interface MemoryStoreOptions {
  readonly clock?: Clock | undefined;
  readonly maxRecords?: number | undefined;
  readonly maxUnfinished?: number | undefined;
}

interface Kept {
  readonly version: string;
  readonly record: IdempotencyRecord;
  readonly index: RecordIndex;
  dueAt: number | null;
}

/** Stands in for the memory store as long as that is being written. */
export function memoryStore({ clock = systemClock, maxUnfinished = 10_000 }: MemoryStoreOptions = {}): RecordStore {
  const kept = new Map<string, Kept>();
  let unfinished = 0;
  const live = (key: string): Kept | null => {
    const found = kept.get(key);
    if (found === undefined) return null;
    if (found.index.expiresAt !== null && found.index.expiresAt <= clock.now()) {
      kept.delete(key);
      return null;
    }
    return found;
  };
  const versioned = (found: Kept | null): Versioned | null =>
    found === null ? null : { version: found.version, record: found.record };
  const openOf = (index: RecordIndex | null): number =>
    index === null ? 0 : index.events.filter(({ state }) => state !== "held" && state !== "done").length;
  return {
    durability: "process",
    immediate: true,
    endsWithProcess: true,
    identity: "stand-in",
    open: async () => {},
    read: (keys) => keys.map((key) => versioned(live(key))),
    swap: (items) =>
      items.map(({ key, expected, version, record, index, at }): SwapResult => {
        const current = live(key);
        const now = clock.now();
        if ((current?.version ?? null) !== expected || at > now || at < now - 5_000) {
          return { kind: "conflict", current: versioned(current) };
        }
        const more = openOf(index) - openOf(current?.index ?? null);
        if (more > 0 && unfinished >= maxUnfinished) {
          const cause = new PayhooksError("ERR_INBOX_FULL", `${unfinished} events wait.`, { fix: "Raise it." });
          return { kind: "refused", cause };
        }
        unfinished += more;
        kept.set(key, { version, record, index, dueAt: index.dueAt });
        return { kind: "written" };
      }),
    takeDue(limit, hideMs) {
      const now = clock.now();
      const due: DueRecord[] = [];
      let left = 0;
      let nextDueAt: number | null = null;
      const waiting = [...kept].filter(([, { dueAt }]) => dueAt !== null);
      for (const [key, one] of waiting.sort(([, a], [, b]) => (a.dueAt ?? 0) - (b.dueAt ?? 0))) {
        const at = one.dueAt ?? 0;
        if (at > now) {
          nextDueAt = Math.min(nextDueAt ?? at, at);
        } else if (due.length < limit) {
          due.push({ key, version: one.version, record: one.record });
          one.dueAt = now + hideMs;
          nextDueAt = Math.min(nextDueAt ?? one.dueAt, one.dueAt);
        } else left++;
      }
      return { records: due, left, nextDueAt };
    },
    now: () => clock.now(),
    async list(filter, cursor, limit) {
      const all = [...kept.keys()].flatMap((key) => {
        const found = live(key);
        return found === null ? [] : found.index.events.map((event) => ({ event, found }));
      });
      const passed = all
        .filter(({ event }) => (filter.state === undefined ? event.state !== "done" : event.state === filter.state))
        .filter(({ event }) => filter.reason === undefined || event.reason === filter.reason)
        .filter(({ event }) => filter.flow === undefined || event.flow === filter.flow)
        .filter(({ event }) => filter.tenant === undefined || event.tenant === filter.tenant)
        .sort((a, b) => a.event.acceptedAt - b.event.acceptedAt || (a.event.eventId < b.event.eventId ? -1 : 1))
        .filter(
          ({ event: { acceptedAt, eventId } }) =>
            cursor === null ||
            acceptedAt > cursor.acceptedAt ||
            (acceptedAt === cursor.acceptedAt && eventId > cursor.eventId),
        );
      const page = passed.slice(0, limit).map(({ event: { eventId, acceptedAt }, found }) => ({
        eventId,
        acceptedAt,
        versioned: { version: found.version, record: found.record },
      }));
      const last = page.at(-1);
      return { events: page, next: passed.length > limit && last !== undefined ? last : null };
    },
    counts() {
      const counts: { -readonly [K in keyof Counts]: Counts[K] } & { heldBy: Record<string, number> } = {
        waiting: 0,
        retrying: 0,
        running: 0,
        held: 0,
        heldBy: {},
        oldestDueAt: null,
      };
      for (const { index, dueAt } of kept.values()) {
        if (dueAt !== null && dueAt <= clock.now()) counts.oldestDueAt = Math.min(counts.oldestDueAt ?? dueAt, dueAt);
        for (const { state, reason } of index.events) {
          if (state === "done") continue;
          counts[state]++;
          if (reason !== null) counts.heldBy[reason] = (counts.heldBy[reason] ?? 0) + 1;
        }
      }
      return counts;
    },
    probe: async () => {},
    close: async () => {},
  };
}
