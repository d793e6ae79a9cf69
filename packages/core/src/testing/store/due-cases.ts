/** Cases about the index of due times, by which processes find their work. */
import assert from "node:assert/strict";
import type { RecordStore } from "../../inbox/contract/store.ts";
import { indexOf } from "../../inbox/record/index-of.ts";
import type { Lane, Lanes } from "../../inbox/record/lane.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import type { StoreCase } from "./fixture.ts";
import {
  acceptedRecord,
  begunRecord,
  decidedRecord,
  endedRecord,
  HOUR_MS,
  keyOf,
  SHORT_MS,
} from "./records.ts";
import { countsByReason, expectCounts, expectSame, put, putAll, swapOf, takeOfBothLanes } from "./writes.ts";

const [firstKey, secondKey, thirdKey] = [keyOf(1), keyOf(2), keyOf(3)] as const;

async function takeKeys(store: RecordStore, limit: number, hideMs: number): Promise<readonly string[]> {
  return (await takeOfBothLanes(store, limit, hideMs)).records.map(({ key }) => key);
}

/** Polls with a limit for each lane. Returns the keys of the taken records, and how many are left. */
async function takeFromLanes(
  store: RecordStore,
  limit: Lanes,
  hideMs: number,
): Promise<{ readonly keys: readonly string[]; readonly left: Lanes }> {
  const { records, left } = await store.takeDue(limit, hideMs);
  return { keys: records.map(({ key }) => key), left };
}

/** Writes records that became due one after the other, the first one longest ago. */
async function putDue(store: RecordStore, count: number, lane: Lane = "usual"): Promise<readonly string[]> {
  const keys = Array.from({ length: count }, (_, n) => keyOf(lane === "usual" ? n : 1_000 + n));
  const records = new Map<string, IdempotencyRecord>();
  const now = store.now(keyOf(0));
  // Not written in the order of their times.
  keys.toReversed().forEach((key, index) => {
    records.set(key, acceptedRecord(key, now - 100 - index * 10, { lane }));
  });
  await putAll(store, records);
  return keys;
}

export const dueCases: readonly StoreCase[] = [
  {
    name: "a poll returns the stored records unchanged, the longest waiting first",
    async run(rig) {
      const store = await rig.open();
      const keys = await putDue(store, 20);
      const { records, left } = await takeOfBothLanes(store, 100, 60_000);
      assert.deepEqual(
        records.map(({ key }) => key),
        keys,
      );
      assert.equal(left, 0);
      const versions = await store.read(keys);
      records.forEach((due, index) => {
        const writtenRecord = versions[index];
        if (writtenRecord === null || writtenRecord === undefined || "unreadable" in writtenRecord.record)
          assert.fail("The record is missing or unreadable.");
        expectSame(due, { key: due.key, version: writtenRecord.version, record: writtenRecord.record });
      });
    },
  },
  {
    name: "a poll with a limit takes the events that have waited longest",
    needs: "oldestOfAll",
    async run(rig) {
      const store = await rig.open();
      const keys = await putDue(store, 10);
      assert.deepEqual(await takeKeys(store, 3, 60_000), keys.slice(0, 3));
      assert.deepEqual(await takeKeys(store, 4, 60_000), keys.slice(3, 7));
      assert.deepEqual(await takeKeys(store, 10, 60_000), keys.slice(7));
    },
  },
  {
    name: "repeated polls take every due record, and each poll says whether more are left",
    async run(rig) {
      const store = await rig.open();
      const keys = await putDue(store, 50);
      const takenKeys: string[] = [];
      for (let polls = 1; takenKeys.length < keys.length; polls++) {
        const { records, left } = await takeOfBothLanes(store, 7, 60_000);
        assert.ok(records.length <= 7);
        takenKeys.push(...records.map(({ key }) => key));
        assert.equal(
          left > 0,
          takenKeys.length < keys.length,
          `${left} left of ${keys.length - takenKeys.length}`,
        );
        // A poll may find nothing in one part of the store, but some poll has to find the rest.
        assert.ok(polls < 500);
      }
      assert.deepEqual(takenKeys.toSorted(), keys.toSorted());
    },
  },
  {
    name: "a taken record is hidden from every process for the given time, and then comes back unchanged",
    async run(rig) {
      const [store, otherStore] = [await rig.open(), await rig.open()];
      const writtenRecord = await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      const before = await takeOfBothLanes(store, 10, SHORT_MS);
      assert.equal(before.records.length, 1);
      expectSame(before.records[0], writtenRecord);
      for (const each of [store, otherStore]) {
        const { records, left, nextDueAt } = await takeOfBothLanes(each, 10, SHORT_MS);
        assert.deepEqual([records, left], [[], 0]);
        assert.notEqual(nextDueAt, null);
        assert.ok((nextDueAt ?? 0) - each.now(firstKey) <= SHORT_MS);
      }
      await rig.advance(SHORT_MS + 100);
      const { records } = await takeOfBothLanes(otherStore, 10, SHORT_MS);
      expectSame(records[0], writtenRecord);
    },
  },
  {
    name: "a poll with a limit of 0 takes nothing, and says whether something is due",
    async run(rig) {
      const store = await rig.open();
      assert.deepEqual(await takeOfBothLanes(store, 0, 60_000), { records: [], left: 0, nextDueAt: null });
      const now = store.now(secondKey);
      await put(store, secondKey, null, acceptedRecord(secondKey, now, { delayMs: 2 * HOUR_MS }));
      assert.deepEqual(await takeOfBothLanes(store, 0, 60_000), {
        records: [],
        left: 0,
        nextDueAt: now + 2 * HOUR_MS,
      });
      await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      for (let polls = 0; polls < 2; polls++) {
        const { records, left } = await takeOfBothLanes(store, 0, 60_000);
        assert.deepEqual(records, []);
        assert.ok(left > 0);
      }
      assert.deepEqual(await takeKeys(store, 10, 60_000), [firstKey]);
    },
  },
  {
    name: "a record is not taken before it is due, and a poll returns the next due time",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      for (const [key, delayMs] of [
        [firstKey, HOUR_MS],
        [secondKey, 2 * SHORT_MS],
        [thirdKey, SHORT_MS],
      ] as const) {
        await put(store, key, null, acceptedRecord(key, now, { delayMs }));
      }
      assert.deepEqual(await takeOfBothLanes(store, 10, HOUR_MS), {
        records: [],
        left: 0,
        nextDueAt: now + SHORT_MS,
      });
      await rig.advance(SHORT_MS + 100);
      const { records, left, nextDueAt } = await takeOfBothLanes(store, 10, 2 * HOUR_MS);
      assert.deepEqual([records.map(({ key }) => key), left, nextDueAt], [[thirdKey], 0, now + 2 * SHORT_MS]);
      await rig.advance(SHORT_MS + 100);
      const later = await takeOfBothLanes(store, 10, 2 * HOUR_MS);
      assert.deepEqual(
        [later.records.map(({ key }) => key), later.left, later.nextDueAt],
        [[secondKey], 0, now + HOUR_MS],
      );
    },
  },
  {
    name: "due times may have fractions of a millisecond, which a store may round",
    async run(rig) {
      const store = await rig.open();
      const dueAt = Math.floor(store.now(firstKey)) + HOUR_MS + 0.5;
      const record = acceptedRecord(firstKey, store.now(firstKey), { delayMs: HOUR_MS });
      await put(store, firstKey, null, record, { index: { ...indexOf(firstKey, record), dueAt } });
      const { nextDueAt } = await takeOfBothLanes(store, 10, 60_000);
      assert.ok(Math.abs((nextDueAt ?? 0) - dueAt) < 1, `${nextDueAt} instead of ${dueAt}`);
    },
  },
  {
    name: "a write can make its record due earlier, later or never",
    async run(rig) {
      const store = await rig.open();
      let now = store.now(firstKey);
      const later = await put(
        store,
        firstKey,
        null,
        acceptedRecord(firstKey, now, { delayMs: HOUR_MS, held: "malformed" }),
      );
      const due = await put(store, firstKey, later, decidedRecord(firstKey, now, later.record, "replay"));
      assert.ok((await takeOfBothLanes(store, 0, 0)).left > 0);
      const running = await put(store, firstKey, due, begunRecord(firstKey, now, due.record, HOUR_MS));
      assert.deepEqual(await takeOfBothLanes(store, 10, 60_000), {
        records: [],
        left: 0,
        nextDueAt: now + HOUR_MS,
      });
      now = store.now(firstKey);
      const retried = { kind: "retry", delayMs: 2 * HOUR_MS } as const;
      const waits = await put(store, firstKey, running, endedRecord(firstKey, now, due.record, retried));
      assert.deepEqual(await takeOfBothLanes(store, 10, 60_000), {
        records: [],
        left: 0,
        nextDueAt: now + 2 * HOUR_MS,
      });
      await put(store, firstKey, waits, endedRecord(firstKey, now, due.record));
      assert.deepEqual(await takeOfBothLanes(store, 10, 60_000), { records: [], left: 0, nextDueAt: null });
    },
  },
  {
    name: "a write ends the hiding of its record",
    async run(rig) {
      const store = await rig.open();
      const first = await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      assert.deepEqual(await takeKeys(store, 10, HOUR_MS), [firstKey]);
      const leased = await put(
        store,
        firstKey,
        first,
        begunRecord(firstKey, store.now(firstKey), first.record, 2 * HOUR_MS),
      );
      const { records, nextDueAt } = await takeOfBothLanes(store, 10, HOUR_MS);
      assert.deepEqual(records, []);
      assert.equal(nextDueAt, indexOf(firstKey, leased.record).dueAt);
      const again = endedRecord(firstKey, store.now(firstKey), first.record, { kind: "handed-back" });
      await put(store, firstKey, leased, again);
      assert.deepEqual(await takeKeys(store, 10, HOUR_MS), [firstKey]);
      assert.deepEqual(await takeKeys(store, 10, HOUR_MS), []);
    },
  },
  {
    name: "a write that keeps the due time also ends the hiding of its record",
    async run(rig) {
      const store = await rig.open();
      const first = await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      assert.deepEqual(await takeKeys(store, 10, HOUR_MS), [firstKey]);
      await put(store, firstKey, first, { ...first.record, signedAt: first.record.signedAt + 1 });
      assert.deepEqual(await takeKeys(store, 10, HOUR_MS), [firstKey]);
      assert.deepEqual(await takeKeys(store, 10, HOUR_MS), []);
    },
  },
  {
    name: "a record that comes out of hiding has waited since then, not since it was first due",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      await put(store, firstKey, null, acceptedRecord(firstKey, now - 10_000));
      assert.deepEqual(await takeKeys(store, 10, SHORT_MS), [firstKey]);
      await put(store, secondKey, null, acceptedRecord(secondKey, store.now(secondKey)));
      await rig.advance(SHORT_MS + 100);
      assert.ok(((await countsByReason(store)).oldestDueAt ?? 0) >= now);
      assert.deepEqual(await takeKeys(store, 1, HOUR_MS), [secondKey]);
      assert.deepEqual(await takeKeys(store, 1, HOUR_MS), [firstKey]);
    },
  },
  {
    name: "a record whose lease has lapsed is taken like any due record",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      const first = await put(store, firstKey, null, acceptedRecord(firstKey, now));
      const leased = await put(store, firstKey, first, begunRecord(firstKey, now, first.record, SHORT_MS));
      assert.deepEqual(await takeKeys(store, 10, 60_000), []);
      await expectCounts(store, { running: 1, oldestDueAt: null });
      await rig.advance(SHORT_MS + 100);
      await expectCounts(store, { running: 1, oldestDueAt: now + SHORT_MS });
      const { records } = await takeOfBothLanes(store, 10, 60_000);
      expectSame(records[0], leased);
    },
  },
  {
    name: "processes that poll at the same time never take the same record",
    async run(rig) {
      const stores = [await rig.open(), await rig.open(), await rig.open()];
      const [store] = stores;
      if (store === undefined) throw new Error("no store");
      const keys = await putDue(store, 60);
      const takenKeys: string[] = [];
      for (let polls = 1; takenKeys.length < keys.length; polls++) {
        const keysByStore = await Promise.all(stores.map((each) => takeKeys(each, 5, 60_000)));
        takenKeys.push(...keysByStore.flat());
        assert.ok(polls < 200);
      }
      assert.deepEqual(takenKeys.toSorted(), keys.toSorted());
    },
  },
  {
    name: "a process cannot lease a record from a version that another process has replaced",
    async run(rig) {
      const [store, otherStore] = [await rig.open(), await rig.open()];
      const acceptedAt = store.now(firstKey);
      const first = await put(store, firstKey, null, acceptedRecord(firstKey, acceptedAt));
      assert.deepEqual(await takeKeys(store, 1, 60_000), [firstKey]);
      const leased = await put(
        store,
        firstKey,
        first,
        begunRecord(firstKey, store.now(firstKey), first.record, HOUR_MS),
      );
      // The other process may know the store's time less exactly.
      const now = Math.max(acceptedAt, otherStore.now(firstKey));
      const late = swapOf(otherStore, firstKey, first, begunRecord(firstKey, now, first.record, HOUR_MS));
      const [result] = await otherStore.swap([late]);
      expectSame(result?.kind === "conflict" ? result.current : null, leased);
    },
  },
  {
    name: "a due time that is further away than when it was written counts as reached",
    needs: "distrustsClock",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      const record = acceptedRecord(firstKey, now, { delayMs: 1_000 });
      // Another slot of the record was written under a clock that was an hour ahead.
      await put(store, firstKey, null, record, {
        index: { ...indexOf(firstKey, record), dueAt: now + HOUR_MS, originalDelayMs: 1_000 },
      });
      await put(store, secondKey, null, acceptedRecord(secondKey, now, { delayMs: HOUR_MS }));
      assert.deepEqual(await takeKeys(store, 10, 60_000), [firstKey]);
      assert.deepEqual(await takeKeys(store, 10, 60_000), []);
    },
  },
  {
    name: "a record whose due time is too far away counts as due since now, and not as due later",
    needs: "distrustsClock",
    async run(rig) {
      const store = await rig.open();
      const record = acceptedRecord(firstKey, store.now(firstKey), { delayMs: 1_000 });
      const index = {
        ...indexOf(firstKey, record),
        dueAt: store.now(firstKey) + HOUR_MS,
        originalDelayMs: 1_000,
      };
      await put(store, firstKey, null, record, { index });
      assert.equal((await countsByReason(store)).oldestDueAt, store.now(firstKey));
      assert.equal((await takeOfBothLanes(store, 0, 60_000)).nextDueAt, null);
    },
  },
  {
    name: "a due time that is up to 5 s further away than when it was written is trusted",
    needs: "distrustsClock",
    async run(rig) {
      const store = await rig.open();
      const record = acceptedRecord(firstKey, store.now(firstKey), { delayMs: 1_000 });
      const dueAt = store.now(firstKey) + 5_500;
      await put(store, firstKey, null, record, {
        index: { ...indexOf(firstKey, record), dueAt, originalDelayMs: 1_000 },
      });
      assert.deepEqual(await takeOfBothLanes(store, 10, 60_000), { records: [], left: 0, nextDueAt: dueAt });
    },
  },
  {
    name: "a poll takes from each lane up to that lane's limit, the longest waiting first",
    async run(rig) {
      const store = await rig.open();
      const usual = await putDue(store, 3);
      const patient = await putDue(store, 3, "patient");
      const both = await takeFromLanes(store, { usual: 10, patient: 10 }, SHORT_MS);
      assert.deepEqual(both.keys.toSorted(), [...usual, ...patient].toSorted());
      for (const lane of [usual, patient]) {
        assert.deepEqual(
          both.keys.filter((key) => lane.includes(key)),
          lane,
        );
      }
      assert.deepEqual(both.left, { usual: 0, patient: 0 });
      await rig.advance(SHORT_MS + 100);
      const fromPatient = await takeFromLanes(store, { usual: 0, patient: 10 }, HOUR_MS);
      assert.deepEqual(fromPatient.keys.toSorted(), patient.toSorted());
      assert.deepEqual([fromPatient.left.usual > 0, fromPatient.left.patient], [true, 0]);
      const fromUsual = await takeFromLanes(store, { usual: 10, patient: 0 }, HOUR_MS);
      assert.deepEqual(
        [fromUsual.keys.toSorted(), fromUsual.left],
        [usual.toSorted(), { usual: 0, patient: 0 }],
      );
    },
  },
  {
    name: "a poll says for each lane whether more is due, even for a lane with a limit of 0",
    async run(rig) {
      const store = await rig.open();
      await putDue(store, 4, "patient");
      const none = await store.takeDue({ usual: 0, patient: 0 }, 60_000);
      assert.deepEqual([none.left.usual, none.left.patient > 0], [0, true]);
      assert.ok((await countsByReason(store)).oldestDueAt !== null);
      const other = await takeFromLanes(store, { usual: 4, patient: 0 }, 60_000);
      assert.deepEqual([other.keys, other.left.usual, other.left.patient > 0], [[], 0, true]);
      await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      const both = await store.takeDue({ usual: 0, patient: 0 }, 60_000);
      assert.deepEqual([both.left.usual > 0, both.left.patient > 0], [true, true]);
    },
  },
  {
    name: "a record in the patient lane is not taken before it is due, and a poll returns its due time",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      await put(store, firstKey, null, acceptedRecord(firstKey, now, { lane: "patient", delayMs: SHORT_MS }));
      await put(store, secondKey, null, acceptedRecord(secondKey, now, { delayMs: HOUR_MS }));
      assert.equal((await takeOfBothLanes(store, 10, HOUR_MS)).nextDueAt, now + SHORT_MS);
      await rig.advance(SHORT_MS + 100);
      assert.deepEqual((await takeFromLanes(store, { usual: 10, patient: 0 }, HOUR_MS)).keys, []);
      assert.deepEqual((await takeFromLanes(store, { usual: 0, patient: 10 }, HOUR_MS)).keys, [firstKey]);
      assert.equal((await takeOfBothLanes(store, 10, HOUR_MS)).nextDueAt, now + HOUR_MS);
    },
  },
  {
    name: "a record stays in its lane while it is hidden, leased, past its lease and waiting again",
    async run(rig) {
      const store = await rig.open();
      const onlyUsual = { usual: 10, patient: 0 };
      const onlyPatient = { usual: 0, patient: 10 };
      const first = await put(
        store,
        firstKey,
        null,
        acceptedRecord(firstKey, store.now(firstKey), { lane: "patient" }),
      );
      assert.deepEqual((await takeFromLanes(store, onlyPatient, SHORT_MS)).keys, [firstKey]);
      await rig.advance(SHORT_MS + 100);
      assert.deepEqual((await takeFromLanes(store, onlyUsual, SHORT_MS)).keys, []);
      const run = begunRecord(firstKey, store.now(firstKey), first.record, SHORT_MS);
      const running = await put(store, firstKey, first, run);
      await rig.advance(SHORT_MS + 100);
      assert.deepEqual((await takeFromLanes(store, onlyUsual, SHORT_MS)).keys, []);
      assert.deepEqual((await takeFromLanes(store, onlyPatient, SHORT_MS)).keys, [firstKey]);
      const again = endedRecord(firstKey, store.now(firstKey), first.record, { kind: "handed-back" });
      const waits = await put(store, firstKey, running, again);
      assert.deepEqual((await takeFromLanes(store, onlyUsual, SHORT_MS)).keys, []);
      assert.deepEqual((await takeFromLanes(store, onlyPatient, HOUR_MS)).keys, [firstKey]);
      await put(store, firstKey, waits, endedRecord(firstKey, store.now(firstKey), first.record));
      const { left, nextDueAt } = await store.takeDue({ usual: 0, patient: 0 }, 0);
      assert.deepEqual([left, nextDueAt], [{ usual: 0, patient: 0 }, null]);
    },
  },
  {
    name: "a write moves its record to another lane",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      const pending = acceptedRecord(firstKey, now, { status: "PENDING", lane: "patient", delayMs: HOUR_MS });
      const first = await put(store, firstKey, null, pending);
      // The terminal status overtakes the PENDING, and waits in a lane of its own.
      const second = acceptedRecord(firstKey, now, { status: "SUCCESS", lane: "usual" }, pending);
      await put(store, firstKey, first, second);
      assert.deepEqual((await takeFromLanes(store, { usual: 0, patient: 10 }, HOUR_MS)).keys, []);
      assert.deepEqual((await takeFromLanes(store, { usual: 10, patient: 0 }, HOUR_MS)).keys, [firstKey]);
    },
  },
  {
    name: "an announced write wakes another process",
    needs: "announces",
    async run(rig) {
      const [store, otherStore] = [await rig.open(), await rig.open()];
      let wake = (): void => {};
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const end = await otherStore.onDue?.(() => {
        wake();
        return true;
      });
      if (end === undefined) assert.fail("The store has no onDue.");
      await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)), {
        shouldAnnounce: true,
      });
      await woken;
      assert.deepEqual(await takeKeys(otherStore, 10, 60_000), [firstKey]);
      await end();
    },
  },
];
