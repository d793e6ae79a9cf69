/** What people ask for: lists of events, and how many there are. */
import { expect } from "vitest";
import type { EventFilter } from "../../packages/core/src/inbox/inbox.ts";
import type { IdempotencyRecord } from "../../packages/core/src/inbox/record/record.ts";
import type { ListCursor, Listed, RecordStore } from "../../packages/core/src/inbox/store.ts";
import type { StoreCase } from "./store-ground.ts";
import {
  accepted,
  begun,
  countsOf,
  decided,
  ended,
  eventIds,
  expectSame,
  HOUR_MS,
  keyOf,
  put,
  putAll,
} from "./store-records.ts";

/** All pages, one after the other; `between` is called with each. */
async function pagesOf(
  store: RecordStore,
  filter: EventFilter,
  limit: number,
  between: (page: Listed["events"]) => Promise<void> = async () => {},
): Promise<readonly Listed["events"][number][]> {
  const all: Listed["events"][number][] = [];
  let cursor: ListCursor | null = null;
  for (let pages = 1; ; pages++) {
    const { events, next }: Listed = await store.list(filter, cursor, limit);
    expect(events.length).toBeLessThanOrEqual(limit);
    all.push(...events);
    await between(events);
    if (next === null) return all;
    cursor = next;
    expect(pages, "pages without an end").toBeLessThan(1_000);
  }
}

const idsOf = (events: Listed["events"]): readonly string[] => events.map(({ eventId }) => eventId);

/** Held events, three of each time of acceptance. */
async function putHeld(
  store: RecordStore,
  count: number,
): Promise<{ readonly ids: readonly string[]; readonly written: Awaited<ReturnType<typeof putAll>> }> {
  const records = new Map<string, IdempotencyRecord>();
  const start = store.now(keyOf(0)) - HOUR_MS;
  const events: { readonly eventId: string; readonly at: number }[] = [];
  for (let n = 0; n < count; n++) {
    const key = keyOf(n);
    const at = start + Math.floor(n / 3) * 1_000;
    const record = accepted(key, at, { held: "malformed", id: `tx-${n}` });
    records.set(key, record);
    for (const eventId of eventIds(key, record)) events.push({ eventId, at });
  }
  const written = await putAll(store, records);
  const sorted = events.toSorted((a, b) => a.at - b.at || (a.eventId < b.eventId ? -1 : 1));
  return { ids: sorted.map(({ eventId }) => eventId), written };
}

export const listCases: readonly StoreCase[] = [
  {
    name: "events are listed by the time of their acceptance, then by their id, page by page",
    async run(rig) {
      const store = await rig.open();
      const { ids, written } = await putHeld(store, 20);
      for (const limit of [1, 2, 3, 7, 20, 21]) {
        const events = await pagesOf(store, { state: "held" }, limit);
        expect(idsOf(events)).toEqual(ids);
        for (const { eventId, acceptedAt, versioned } of events) {
          const known = written.get(eventId.slice(0, 32));
          if (known === undefined) expect.fail(`${eventId} was never written`);
          expectSame(versioned, known);
          expect(known.record.slots[eventId.slice(32)]?.acceptedAt).toBe(acceptedAt);
        }
      }
    },
  },
  {
    name: "nothing is skipped when what was listed goes before the next page is asked for",
    async run(rig) {
      const [store, other] = [await rig.open(), await rig.open()];
      const { ids, written } = await putHeld(store, 25);
      const events = await pagesOf(store, { state: "held" }, 4, async (page) => {
        for (const { eventId } of page) {
          const known = written.get(eventId.slice(0, 32));
          if (known === undefined) expect.fail(`${eventId} was never written`);
          await put(
            other,
            known.key,
            known,
            decided(known.key, other.now(known.key), known.record, "discard"),
          );
        }
      });
      expect(idsOf(events)).toEqual(ids);
      expect(await store.list({ state: "held" }, null, 10)).toEqual({ events: [], next: null });
    },
  },
  {
    name: "a list is filtered by each of its fields, and by all of them",
    async run(rig) {
      const store = await rig.open();
      const start = store.now(keyOf(0)) - HOUR_MS;
      const samples = [
        { tenant: "a", id: "tx-1", referenceId: "o-1" },
        { tenant: "a", id: "tx-2", referenceId: "o-2", name: "WITHDRAWAL", status: "PENDING" },
        { tenant: "b", id: "tx-3", referenceId: "o-1", held: "malformed" },
        { tenant: "b", id: "tx-1", held: "unexpected", name: "WITHDRAWAL" },
        { flow: "connect", id: "evt-1", name: "settlement.approved", status: "" },
        { flow: "connect", id: "evt-2", name: "settlement.approved", status: "", held: "unexpected" },
      ] as const;
      const names = new Map<string, number>();
      for (const [n, sample] of samples.entries()) {
        const record = accepted(keyOf(n), start + n * 1_000, sample);
        await put(store, keyOf(n), null, record);
        for (const eventId of eventIds(keyOf(n), record)) names.set(eventId, n);
      }
      const listed = async (filter: EventFilter): Promise<readonly (number | undefined)[]> =>
        idsOf(await pagesOf(store, filter, 2)).map((eventId) => names.get(eventId));
      expect(await listed({})).toEqual([0, 1, 2, 3, 4, 5]);
      expect(await listed({ state: "waiting" })).toEqual([0, 1, 4]);
      expect(await listed({ state: "held" })).toEqual([2, 3, 5]);
      expect(await listed({ state: "running" })).toEqual([]);
      expect(await listed({ state: "retrying" })).toEqual([]);
      expect(await listed({ flow: "payments" })).toEqual([0, 1, 2, 3]);
      expect(await listed({ flow: "connect" })).toEqual([4, 5]);
      expect(await listed({ tenant: "a" })).toEqual([0, 1]);
      expect(await listed({ tenant: "" })).toEqual([4, 5]);
      expect(await listed({ event: "WITHDRAWAL" })).toEqual([1, 3]);
      expect(await listed({ reason: "unexpected" })).toEqual([3, 5]);
      expect(await listed({ reason: "conflict" })).toEqual([]);
      // Of a malformed body no reference is read.
      expect(await listed({ referenceId: "o-1" })).toEqual([0, 3]);
      expect(await listed({ id: "tx-1" })).toEqual([0, 3]);
      expect(await listed({ since: start + 2_000 })).toEqual([2, 3, 4, 5]);
      expect(await listed({ until: start + 2_000 })).toEqual([0, 1]);
      expect(await listed({ since: start + 1_000, until: start + 4_000 })).toEqual([1, 2, 3]);
      expect(await listed({ tenant: "b", id: "tx-1", state: "held", flow: "payments" })).toEqual([3]);
      expect(await listed({ tenant: "a", reason: "unexpected" })).toEqual([]);
    },
  },
  {
    name: "each event of a record is listed by itself, where it stands now",
    async run(rig) {
      const store = await rig.open();
      const key = keyOf(1);
      const now = store.now(key);
      const pending = accepted(key, now - 2_000, { status: "PENDING" });
      const running = begun(key, now - 1_000, pending, HOUR_MS);
      const both = accepted(key, now, { status: "SUCCESS" }, running);
      const first = await put(store, key, null, pending);
      const [pendingId = "", successId = ""] = eventIds(key, both);
      const second = await put(store, key, first, both);
      const listed = async (filter: EventFilter) => idsOf((await store.list(filter, null, 10)).events);
      expect(await listed({})).toEqual([pendingId, successId]);
      expect(await listed({ state: "running" })).toEqual([pendingId]);
      expect(await listed({ state: "waiting" })).toEqual([successId]);
      const done = accepted(key, now, { status: "SUCCESS" }, ended(key, now, pending));
      const third = await put(store, key, second, ended(key, now, done, { kind: "retry", delayMs: 1_000 }));
      expect(await listed({ state: "running" })).toEqual([]);
      expect(await listed({ state: "waiting" })).toEqual([]);
      expect(await listed({ state: "retrying" })).toEqual([successId]);
      const [event] = (await store.list({ state: "retrying" }, null, 10)).events;
      expectSame(event?.versioned, third);
    },
  },
  {
    name: "finished events are listed where they are asked for",
    needs: "listsFinished",
    async run(rig) {
      const store = await rig.open();
      const ids: string[] = [];
      for (let n = 0; n < 9; n++) {
        const key = keyOf(n);
        const now = store.now(key) - 60_000 + n * 1_000;
        const waiting = await put(
          store,
          key,
          null,
          accepted(key, now, { id: `tx-${n}`, tenant: `t-${n % 2}` }),
        );
        const done = await put(store, key, waiting, ended(key, now, waiting.record));
        ids.push(...eventIds(key, done.record));
      }
      await put(store, keyOf(10), null, accepted(keyOf(10), store.now(keyOf(10))));
      expect(idsOf(await pagesOf(store, { state: "done" }, 4))).toEqual(ids);
      expect(idsOf(await pagesOf(store, { state: "done", id: "tx-3" }, 4))).toEqual([ids[3]]);
      expect(idsOf(await pagesOf(store, { state: "done", tenant: "t-1" }, 2))).toEqual(
        ids.filter((_, n) => n % 2 === 1),
      );
    },
  },
  {
    name: "events are counted by where they stand, and held ones by their reasons",
    async run(rig) {
      const store = await rig.open();
      const nothing = { waiting: 0, retrying: 0, running: 0, held: 0, heldBy: [], oldestDueAt: null };
      expect(await countsOf(store)).toEqual(nothing);
      const [a, b, c, d] = [keyOf(1), keyOf(2), keyOf(3), keyOf(4)] as const;
      const now = store.now(a);
      const first = await put(store, a, null, accepted(a, now - 50));
      expect(await countsOf(store)).toEqual({ ...nothing, waiting: 1, oldestDueAt: now - 50 });
      await put(store, b, null, accepted(b, now - 90));
      const held = await put(store, c, null, accepted(c, now - 20, { held: "unexpected" }));
      await put(store, d, null, accepted(d, now - 10, { held: "malformed" }));
      const heldBy = [
        ["malformed", 1],
        ["unexpected", 1],
      ];
      const all = { ...nothing, waiting: 2, held: 2, heldBy, oldestDueAt: now - 90 };
      expect(await countsOf(store)).toEqual(all);
      const running = await put(store, a, first, begun(a, now, first.record, HOUR_MS));
      expect(await countsOf(store)).toEqual({ ...all, waiting: 1, running: 1 });
      const later = { kind: "retry", delayMs: HOUR_MS } as const;
      const retrying = await put(store, a, running, ended(a, now, first.record, later));
      expect(await countsOf(store)).toEqual({ ...all, waiting: 1, retrying: 1 });
      await put(store, a, retrying, ended(a, now, first.record));
      expect(await countsOf(store)).toEqual({ ...all, waiting: 1 });
      const replayed = await put(store, c, held, decided(c, now, held.record, "replay"));
      expect(await countsOf(store)).toEqual({ ...all, waiting: 2, held: 1, heldBy: [["malformed", 1]] });
      const gaveUp = { kind: "held", reason: "rejected", detail: null, tell: false } as const;
      await put(store, c, replayed, ended(c, now, replayed.record, gaveUp));
      heldBy[1] = ["rejected", 1];
      expect(await countsOf(store)).toEqual({ ...all, waiting: 1, heldBy });
    },
  },
];
