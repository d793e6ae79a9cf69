import type { Clock } from "../../clock.ts";
import { lifeOf } from "../record/decisions.ts";
import { isUnreadable } from "../record/codec.ts";
import type { RecordIndex } from "../record/index-of.ts";
import type { RecordStore, Versioned } from "../store.ts";

export interface MemoryStoreOptions {
  readonly clock: Clock;
  readonly maxRecords: number;
  readonly maxUnfinished: number;
}
export interface MemoryStore extends RecordStore {
  restore(key: string, versioned: Versioned): void;
}
import { indexOf } from "../record/index-of.ts";

/** Temporary. */
export function memoryStore({ clock }: MemoryStoreOptions): MemoryStore {
  const all = new Map<string, { v: Versioned; index: RecordIndex; hidden: number }>();
  const get = (key: string) => {
    const f = all.get(key);
    if (f === undefined) return null;
    if (f.index.expiresAt !== null && f.index.expiresAt <= clock.now()) return null;
    return f;
  };
  return {
    durability: "process",
    immediate: true,
    endsWithProcess: true,
    identity: "x",
    open: async () => {},
    read: (keys) => keys.map((key) => get(key)?.v ?? null),
    swap: (items) =>
      items.map(({ key, expected, version, record, index }) => {
        const f = get(key);
        if ((f?.v.version ?? null) !== expected) return { kind: "conflict", current: f?.v ?? null };
        all.set(key, { v: { version, record }, index, hidden: 0 });
        return { kind: "written" };
      }),
    takeDue(limit, hideMs) {
      const now = clock.now();
      const due = [...all.entries()].filter(([, { index, hidden }]) => index.dueAt !== null && Math.max(index.dueAt, hidden) <= now);
      due.sort((a, b) => (a[1].index.dueAt ?? 0) - (b[1].index.dueAt ?? 0));
      const taken = due.slice(0, limit);
      for (const [, f] of taken) f.hidden = now + hideMs;
      let nextDueAt: number | null = null;
      for (const { index, hidden } of all.values()) {
        if (index.dueAt === null) continue;
        const at = Math.max(index.dueAt, hidden);
        if (at > now) nextDueAt = Math.min(nextDueAt ?? at, at);
      }
      return { records: taken.map(([key, { v }]) => ({ key, ...v })), left: due.length - taken.length, nextDueAt };
    },
    now: () => clock.now(),
    async list(filter) {
      const events = [];
      for (const [, { v, index }] of all) {
        for (const e of index.events) {
          if (filter.state !== undefined && e.state !== filter.state) continue;
          if (filter.flow !== undefined && e.flow !== filter.flow) continue;
          if (filter.tenant !== undefined && e.tenant !== filter.tenant) continue;
          if (filter.reason !== undefined && e.reason !== filter.reason) continue;
          events.push({ eventId: e.eventId, acceptedAt: e.acceptedAt, versioned: v });
        }
      }
      return { events, next: null };
    },
    counts() {
      const c = { waiting: 0, retrying: 0, running: 0, held: 0, done: 0 };
      for (const { index } of all.values()) for (const e of index.events) c[e.state]++;
      return { ...c, heldBy: {}, oldestDueAt: null };
    },
    probe: async () => {},
    restore(key, v) {
      if (!isUnreadable(v.record)) all.set(key, { v, index: indexOf(key, v.record), hidden: 0 });
    },
    close: async () => {},
  };
}
void lifeOf;
