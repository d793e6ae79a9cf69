/** Cases about lists and counts of events. */
import assert from "node:assert/strict";
import type { EventFilter } from "../../inbox/contract/event-query.ts";
import type { ListCursor, ListOrder, ListPage, RecordStore } from "../../inbox/contract/store.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import type { StoreCase } from "./fixture.ts";
import {
  acceptedRecord,
  begunRecord,
  decidedRecord,
  endedRecord,
  eventIds,
  HOUR_MS,
  keyOf,
  type Sample,
  SHORT_MS,
} from "./records.ts";
import { countsByReason, expectSame, type PutRecord, put, putAll } from "./writes.ts";

/** Reads all pages one after the other, and calls `afterPage` with each. */
async function listAll(
  store: RecordStore,
  filter: EventFilter,
  limit: number,
  afterPage: (page: ListPage["events"]) => Promise<void> = async () => {},
  first?: ListOrder,
): Promise<readonly ListPage["events"][number][]> {
  const allEvents: ListPage["events"][number][] = [];
  let cursor: ListCursor | null = null;
  for (let pages = 1; ; pages++) {
    const { events, next }: ListPage = await store.list(filter, cursor, limit, first);
    assert.ok(events.length <= limit);
    allEvents.push(...events);
    await afterPage(events);
    if (next === null) return allEvents;
    cursor = next;
    assert.ok(pages < 1_000, "The list does not end.");
  }
}

const idsOf = (events: ListPage["events"]): readonly string[] => events.map(({ eventId }) => eventId);

/** Writes held events, three for each time of acceptance. */
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
    const record = acceptedRecord(key, at, { held: "malformed", id: `tx-${n}` });
    records.set(key, record);
    for (const eventId of eventIds(key, record)) events.push({ eventId, at });
  }
  const written = await putAll(store, records);
  const sorted = events.toSorted((a, b) => a.at - b.at || (a.eventId < b.eventId ? -1 : 1));
  return { ids: sorted.map(({ eventId }) => eventId), written };
}

export const listCases: readonly StoreCase[] = [
  {
    name: "a list in pages is ordered by the time of acceptance, then by event id",
    async run(rig) {
      const store = await rig.open();
      const { ids, written } = await putHeld(store, 20);
      for (const limit of [1, 2, 3, 7, 20, 21]) {
        const events = await listAll(store, { state: "held" }, limit);
        assert.deepEqual(idsOf(events), ids);
        for (const { eventId, acceptedAt, versioned } of events) {
          const writtenRecord = written.get(eventId.slice(0, 32));
          if (writtenRecord === undefined) assert.fail(`${eventId} was never written`);
          expectSame(versioned, writtenRecord);
          assert.equal(writtenRecord.record.slots[eventId.slice(32)]?.acceptedAt, acceptedAt);
        }
      }
    },
  },
  {
    name: "no event is skipped if the events of a page leave the list before the next page",
    async run(rig) {
      const [store, otherStore] = [await rig.open(), await rig.open()];
      const { ids, written } = await putHeld(store, 25);
      const events = await listAll(store, { state: "held" }, 4, async (page) => {
        for (const { eventId } of page) {
          const writtenRecord = written.get(eventId.slice(0, 32));
          if (writtenRecord === undefined) assert.fail(`${eventId} was never written`);
          await put(
            otherStore,
            writtenRecord.key,
            writtenRecord,
            decidedRecord(
              writtenRecord.key,
              otherStore.now(writtenRecord.key),
              writtenRecord.record,
              "discard",
            ),
          );
        }
      });
      assert.deepEqual(idsOf(events), ids);
      assert.deepEqual(await store.list({ state: "held" }, null, 10), { events: [], next: null });
    },
  },
  {
    name: "a list begins with the newest event on request",
    async run(rig) {
      const store = await rig.open();
      const { ids } = await putHeld(store, 20);
      const start = store.now(keyOf(0)) - HOUR_MS;
      for (const limit of [1, 2, 7, 20, 21]) {
        for (const filter of [{ state: "held" }, {}] as const) {
          const events = await listAll(store, filter, limit, undefined, "newest");
          assert.deepEqual(idsOf(events), ids.toReversed());
        }
        // The same with a filter by time.
        const within = { state: "held", since: start - 60_000, until: start + HOUR_MS } as const;
        assert.deepEqual(idsOf(await listAll(store, within, limit, undefined, "newest")), ids.toReversed());
      }
      const [{ acceptedAt = 0 } = {}] = (await store.list({}, null, 1, "newest")).events;
      const older = await listAll(store, { until: acceptedAt }, 3, undefined, "newest");
      assert.deepEqual(idsOf(older), ids.slice(0, older.length).toReversed());
      assert.ok(older.length < 20);
      const newest = await listAll(store, { since: acceptedAt }, 3, undefined, "newest");
      assert.deepEqual(idsOf(newest), ids.slice(older.length).toReversed());
    },
  },
  {
    name: "an event with several readings is found by the references and ids of each reading",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(keyOf(1));
      const foundBy = ["order-17", "order-17&status=FAILED", "tx-17"];
      const entry = acceptedRecord(keyOf(1), now - 2_000, { held: "ambiguous", id: "hash", foundBy });
      const storedRecord = await put(store, keyOf(1), null, entry);
      await put(
        store,
        keyOf(2),
        null,
        acceptedRecord(keyOf(2), now - 1_000, { referenceId: "order-17", id: "tx-2" }),
      );
      await put(
        store,
        keyOf(3),
        null,
        acceptedRecord(keyOf(3), now, { held: "ambiguous", foundBy: ["order-18"] }),
      );
      const [first] = eventIds(keyOf(1), entry);
      const [second] = eventIds(keyOf(2), acceptedRecord(keyOf(2), now));
      const listIds = async (filter: EventFilter) => idsOf(await listAll(store, filter, 10));
      assert.deepEqual(await listIds({ referenceId: "order-17" }), [first, second]);
      assert.deepEqual(await listIds({ referenceId: "order-17", state: "held" }), [first]);
      assert.deepEqual(await listIds({ referenceId: "order-17&status=FAILED" }), [first]);
      assert.deepEqual(await listIds({ id: "tx-17" }), [first]);
      assert.deepEqual(await listIds({ id: "tx-2" }), [second]);
      await put(store, keyOf(1), storedRecord, decidedRecord(keyOf(1), now, entry, "discard"));
      assert.deepEqual(await listIds({ referenceId: "order-17" }), [second]);
    },
  },
  {
    name: "events of any state are found by their references until their record expires",
    needs: "listsFinished",
    async run(rig) {
      const store = await rig.open();
      const reference = "an order with a long name, Ünïcode & more";
      const findIds = async (referenceId: string) =>
        idsOf(await listAll(store, { referenceId, state: "any" }, 2)).toSorted();
      const now = store.now(keyOf(1));
      const sorted = (...records: readonly PutRecord[]) =>
        records.flatMap(({ key, record }) => eventIds(key, record)).toSorted();
      const sample = (id: string): Sample => ({ id, referenceId: reference, retentionMs: SHORT_MS });
      const firstRecord = await put(store, keyOf(1), null, acceptedRecord(keyOf(1), now, sample("tx-1")));
      const secondRecord = await put(
        store,
        keyOf(2),
        null,
        acceptedRecord(keyOf(2), now, { ...sample("tx-2"), retentionMs: HOUR_MS }),
      );
      const foundBy = ["order-1", reference];
      const entry = await put(
        store,
        keyOf(3),
        null,
        acceptedRecord(keyOf(3), now, { held: "ambiguous", id: "hash", foundBy, retentionMs: HOUR_MS }),
      );
      await put(store, keyOf(4), null, acceptedRecord(keyOf(4), now, { referenceId: "order-2", id: "tx-4" }));
      assert.deepEqual(await findIds(reference), sorted(firstRecord, secondRecord, entry));
      assert.deepEqual(await findIds("order-1"), sorted(entry));
      assert.deepEqual(await findIds("order-3"), []);
      const doneRecord = await put(
        store,
        keyOf(1),
        firstRecord,
        endedRecord(keyOf(1), now, firstRecord.record),
      );
      await put(store, keyOf(2), secondRecord, endedRecord(keyOf(2), now, secondRecord.record));
      assert.deepEqual(await findIds(reference), sorted(doneRecord, secondRecord, entry));
      const page = await store.list({ state: "finished", referenceId: reference }, null, 10);
      assert.deepEqual(idsOf(page.events).toSorted(), sorted(doneRecord, secondRecord));
      await rig.advance(SHORT_MS + 100);
      await store.prune?.(store.now(keyOf(0)));
      assert.deepEqual(await findIds(reference), sorted(secondRecord, entry));
    },
  },
  {
    name: "a list is filtered by each field of the filter, and by several together",
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
        { flow: "any-sender", id: "evt-1", name: "invoice.paid", status: "" },
      ] as const;
      const names = new Map<string, number>();
      for (const [n, sample] of samples.entries()) {
        const record = acceptedRecord(keyOf(n), start + n * 1_000, sample);
        await put(store, keyOf(n), null, record);
        for (const eventId of eventIds(keyOf(n), record)) names.set(eventId, n);
      }
      const listIds = async (filter: EventFilter): Promise<readonly (number | undefined)[]> =>
        idsOf(await listAll(store, filter, 2)).map((eventId) => names.get(eventId));
      assert.deepEqual(await listIds({}), [0, 1, 2, 3, 4, 5, 6]);
      assert.deepEqual(await listIds({ state: "waiting" }), [0, 1, 4, 6]);
      assert.deepEqual(await listIds({ state: "held" }), [2, 3, 5]);
      assert.deepEqual(await listIds({ state: "running" }), []);
      assert.deepEqual(await listIds({ state: "retrying" }), []);
      assert.deepEqual(await listIds({ flow: "payments" }), [0, 1, 2, 3]);
      assert.deepEqual(await listIds({ flow: "connect" }), [4, 5]);
      assert.deepEqual(await listIds({ flow: "any-sender" }), [6]);
      assert.deepEqual(await listIds({ flow: "any-sender", id: "evt-1", tenant: "" }), [6]);
      assert.deepEqual(await listIds({ tenant: "a" }), [0, 1]);
      assert.deepEqual(await listIds({ tenant: "" }), [4, 5, 6]);
      assert.deepEqual(await listIds({ event: "WITHDRAWAL" }), [1, 3]);
      assert.deepEqual(await listIds({ reason: "unexpected" }), [3, 5]);
      assert.deepEqual(await listIds({ reason: "conflict" }), []);
      // No reference is read from a malformed body.
      assert.deepEqual(await listIds({ referenceId: "o-1" }), [0, 3]);
      assert.deepEqual(await listIds({ id: "tx-1" }), [0, 3]);
      assert.deepEqual(await listIds({ since: start + 2_000 }), [2, 3, 4, 5, 6]);
      assert.deepEqual(await listIds({ until: start + 2_000 }), [0, 1]);
      assert.deepEqual(await listIds({ since: start + 1_000, until: start + 4_000 }), [1, 2, 3]);
      assert.deepEqual(await listIds({ tenant: "b", id: "tx-1", state: "held", flow: "payments" }), [3]);
      assert.deepEqual(await listIds({ tenant: "a", reason: "unexpected" }), []);
    },
  },
  {
    name: "each event of a record is listed separately, under its current state",
    async run(rig) {
      const store = await rig.open();
      const key = keyOf(1);
      const now = store.now(key);
      const pending = acceptedRecord(key, now - 2_000, { status: "PENDING" });
      const running = begunRecord(key, now - 1_000, pending, HOUR_MS);
      const both = acceptedRecord(key, now, { status: "SUCCESS" }, running);
      const first = await put(store, key, null, pending);
      const [pendingId = "", successId = ""] = eventIds(key, both);
      const second = await put(store, key, first, both);
      const listIds = async (filter: EventFilter) => idsOf((await store.list(filter, null, 10)).events);
      assert.deepEqual(await listIds({}), [pendingId, successId]);
      assert.deepEqual(await listIds({ state: "running" }), [pendingId]);
      assert.deepEqual(await listIds({ state: "waiting" }), [successId]);
      const doneRecord = acceptedRecord(key, now, { status: "SUCCESS" }, endedRecord(key, now, pending));
      const third = await put(
        store,
        key,
        second,
        endedRecord(key, now, doneRecord, { kind: "retry", delayMs: 1_000 }),
      );
      assert.deepEqual(await listIds({ state: "running" }), []);
      assert.deepEqual(await listIds({ state: "waiting" }), []);
      assert.deepEqual(await listIds({ state: "retrying" }), [successId]);
      const [event] = (await store.list({ state: "retrying" }, null, 10)).events;
      expectSame(event?.versioned, third);
    },
  },
  {
    name: "finished events are not listed unless the filter asks for them",
    async run(rig) {
      const store = await rig.open();
      const key = keyOf(1);
      const now = store.now(key);
      const waiting = await put(store, key, null, acceptedRecord(key, now, { id: "tx-1", tenant: "a" }));
      await put(store, key, waiting, endedRecord(key, now, waiting.record));
      for (const filter of [{}, { id: "tx-1" }, { tenant: "a" }, { referenceId: "o-1" }, { since: now }]) {
        assert.deepEqual(await store.list(filter, null, 10), { events: [], next: null });
      }
    },
  },
  {
    name: "finished events are listed if the filter asks for them",
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
          acceptedRecord(key, now, { id: `tx-${n}`, tenant: `t-${n % 2}` }),
        );
        const doneRecord = await put(store, key, waiting, endedRecord(key, now, waiting.record));
        ids.push(...eventIds(key, doneRecord.record));
      }
      await put(store, keyOf(10), null, acceptedRecord(keyOf(10), store.now(keyOf(10))));
      assert.deepEqual(idsOf(await listAll(store, { state: "finished" }, 4)), ids);
      assert.deepEqual(idsOf(await listAll(store, { state: "finished", id: "tx-3" }, 4)), [ids[3]]);
      assert.deepEqual(
        idsOf(await listAll(store, { state: "finished", tenant: "t-1" }, 2)),
        ids.filter((_, n) => n % 2 === 1),
      );
    },
  },
  {
    name: "events are counted by state, and held events also by reason",
    async run(rig) {
      const store = await rig.open();
      const none = { waiting: 0, retrying: 0, running: 0, held: 0, heldBy: [], oldestDueAt: null };
      assert.deepEqual(await countsByReason(store), none);
      const [a, b, c, d] = [keyOf(1), keyOf(2), keyOf(3), keyOf(4)] as const;
      const now = store.now(a);
      const first = await put(store, a, null, acceptedRecord(a, now - 50));
      assert.deepEqual(await countsByReason(store), { ...none, waiting: 1, oldestDueAt: now - 50 });
      await put(store, b, null, acceptedRecord(b, now - 90));
      const heldRecord = await put(store, c, null, acceptedRecord(c, now - 20, { held: "unexpected" }));
      await put(store, d, null, acceptedRecord(d, now - 10, { held: "malformed" }));
      const heldBy = [
        ["malformed", 1],
        ["unexpected", 1],
      ];
      const all = { ...none, waiting: 2, held: 2, heldBy, oldestDueAt: now - 90 };
      assert.deepEqual(await countsByReason(store), all);
      const running = await put(store, a, first, begunRecord(a, now, first.record, HOUR_MS));
      assert.deepEqual(await countsByReason(store), { ...all, waiting: 1, running: 1 });
      const later = { kind: "retry", delayMs: HOUR_MS } as const;
      const retrying = await put(store, a, running, endedRecord(a, now, first.record, later));
      assert.deepEqual(await countsByReason(store), { ...all, waiting: 1, retrying: 1 });
      await put(store, a, retrying, endedRecord(a, now, first.record));
      assert.deepEqual(await countsByReason(store), { ...all, waiting: 1 });
      const replayed = await put(store, c, heldRecord, decidedRecord(c, now, heldRecord.record, "replay"));
      assert.deepEqual(await countsByReason(store), {
        ...all,
        waiting: 2,
        held: 1,
        heldBy: [["malformed", 1]],
      });
      const gaveUp = { kind: "held", reason: "rejected", detail: null, onHeld: [] } as const;
      await put(store, c, replayed, endedRecord(c, now, replayed.record, gaveUp));
      heldBy[1] = ["rejected", 1];
      assert.deepEqual(await countsByReason(store), { ...all, waiting: 1, heldBy });
    },
  },
];
