/** Cases about the index of what is due, by which processes find their work. */
import assert from "node:assert/strict";
import { indexOf } from "../../inbox/record/index-of.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import type { RecordStore } from "../../inbox/store.ts";
import type { StoreCase } from "./fixture.ts";
import { accepted, begun, decided, ended, HOUR_MS, keyOf, SHORT_MS } from "./records.ts";
import { countsOf, expectCounts, expectSame, put, putAll, swapOf } from "./writes.ts";

const [one, two, three] = [keyOf(1), keyOf(2), keyOf(3)] as const;

async function takenKeys(store: RecordStore, limit: number, hideMs: number): Promise<readonly string[]> {
  return (await store.takeDue(limit, hideMs)).records.map(({ key }) => key);
}

/** Writes records that became due one after the other, the first one longest ago. */
async function putDue(store: RecordStore, count: number): Promise<readonly string[]> {
  const keys = Array.from({ length: count }, (_, n) => keyOf(n));
  const records = new Map<string, IdempotencyRecord>();
  const now = store.now(keyOf(0));
  // Not written in the order of their times.
  keys.toReversed().forEach((key, at) => {
    records.set(key, accepted(key, now - 100 - at * 10));
  });
  await putAll(store, records);
  return keys;
}

export const dueCases: readonly StoreCase[] = [
  {
    name: "what is due is taken as it is, the longest waiting first",
    async run(rig) {
      const store = await rig.open();
      const keys = await putDue(store, 20);
      const { records, left } = await store.takeDue(100, 60_000);
      assert.deepEqual(
        records.map(({ key }) => key),
        keys,
      );
      assert.equal(left, 0);
      const versions = await store.read(keys);
      records.forEach((due, at) => {
        const written = versions[at];
        if (written === null || written === undefined || "unreadable" in written.record)
          assert.fail("no record");
        expectSame(due, { key: due.key, version: written.version, record: written.record });
      });
    },
  },
  {
    name: "a look that takes some takes those that wait longest",
    needs: "oldestOfAll",
    async run(rig) {
      const store = await rig.open();
      const keys = await putDue(store, 10);
      assert.deepEqual(await takenKeys(store, 3, 60_000), keys.slice(0, 3));
      assert.deepEqual(await takenKeys(store, 4, 60_000), keys.slice(3, 7));
      assert.deepEqual(await takenKeys(store, 10, 60_000), keys.slice(7));
    },
  },
  {
    name: "everything that is due is taken sooner or later, and says how much is left",
    async run(rig) {
      const store = await rig.open();
      const keys = await putDue(store, 50);
      const taken: string[] = [];
      for (let looks = 1; taken.length < keys.length; looks++) {
        const { records, left } = await store.takeDue(7, 60_000);
        assert.ok(records.length <= 7);
        taken.push(...records.map(({ key }) => key));
        assert.equal(left > 0, taken.length < keys.length, `${left} left of ${keys.length - taken.length}`);
        // Looks that find nothing because they look elsewhere come to an end.
        assert.ok(looks < 500);
      }
      assert.deepEqual(taken.toSorted(), keys.toSorted());
    },
  },
  {
    name: "what was taken is hidden for its time, from everybody, and then comes back unchanged",
    async run(rig) {
      const [store, other] = [await rig.open(), await rig.open()];
      const written = await put(store, one, null, accepted(one, store.now(one)));
      const before = await store.takeDue(10, SHORT_MS);
      assert.equal(before.records.length, 1);
      expectSame(before.records[0], written);
      for (const each of [store, other]) {
        const { records, left, nextDueAt } = await each.takeDue(10, SHORT_MS);
        assert.deepEqual([records, left], [[], 0]);
        assert.notEqual(nextDueAt, null);
        assert.ok((nextDueAt ?? 0) - each.now(one) <= SHORT_MS);
      }
      await rig.advance(SHORT_MS + 100);
      const { records } = await other.takeDue(10, SHORT_MS);
      expectSame(records[0], written);
    },
  },
  {
    name: "a look without a limit to fill takes nothing, and tells whether something is due",
    async run(rig) {
      const store = await rig.open();
      assert.deepEqual(await store.takeDue(0, 60_000), { records: [], left: 0, nextDueAt: null });
      const now = store.now(two);
      await put(store, two, null, accepted(two, now, { delayMs: 2 * HOUR_MS }));
      assert.deepEqual(await store.takeDue(0, 60_000), {
        records: [],
        left: 0,
        nextDueAt: now + 2 * HOUR_MS,
      });
      await put(store, one, null, accepted(one, store.now(one)));
      for (let look = 0; look < 2; look++) {
        const { records, left } = await store.takeDue(0, 60_000);
        assert.deepEqual(records, []);
        assert.ok(left > 0);
      }
      assert.deepEqual(await takenKeys(store, 10, 60_000), [one]);
    },
  },
  {
    name: "what is due later is taken at its time, and the next time is told",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(one);
      for (const [key, delayMs] of [
        [one, HOUR_MS],
        [two, 2 * SHORT_MS],
        [three, SHORT_MS],
      ] as const) {
        await put(store, key, null, accepted(key, now, { delayMs }));
      }
      assert.deepEqual(await store.takeDue(10, HOUR_MS), { records: [], left: 0, nextDueAt: now + SHORT_MS });
      await rig.advance(SHORT_MS + 100);
      const { records, left, nextDueAt } = await store.takeDue(10, 2 * HOUR_MS);
      assert.deepEqual([records.map(({ key }) => key), left, nextDueAt], [[three], 0, now + 2 * SHORT_MS]);
      await rig.advance(SHORT_MS + 100);
      const later = await store.takeDue(10, 2 * HOUR_MS);
      assert.deepEqual(
        [later.records.map(({ key }) => key), later.left, later.nextDueAt],
        [[two], 0, now + HOUR_MS],
      );
    },
  },
  {
    name: "times may have fractions of a millisecond, which a store may round",
    async run(rig) {
      const store = await rig.open();
      const dueAt = Math.floor(store.now(one)) + HOUR_MS + 0.5;
      const record = accepted(one, store.now(one), { delayMs: HOUR_MS });
      await put(store, one, null, record, { index: { ...indexOf(one, record), dueAt } });
      const { nextDueAt } = await store.takeDue(10, 60_000);
      assert.ok(Math.abs((nextDueAt ?? 0) - dueAt) < 1, `${nextDueAt} instead of ${dueAt}`);
    },
  },
  {
    name: "a write moves its record's time, to earlier, to later and to never",
    async run(rig) {
      const store = await rig.open();
      let now = store.now(one);
      const later = await put(store, one, null, accepted(one, now, { delayMs: HOUR_MS, held: "malformed" }));
      const due = await put(store, one, later, decided(one, now, later.record, "replay"));
      assert.ok((await store.takeDue(0, 0)).left > 0);
      const running = await put(store, one, due, begun(one, now, due.record, HOUR_MS));
      assert.deepEqual(await store.takeDue(10, 60_000), { records: [], left: 0, nextDueAt: now + HOUR_MS });
      now = store.now(one);
      const retried = { kind: "retry", delayMs: 2 * HOUR_MS } as const;
      const waits = await put(store, one, running, ended(one, now, due.record, retried));
      assert.deepEqual(await store.takeDue(10, 60_000), {
        records: [],
        left: 0,
        nextDueAt: now + 2 * HOUR_MS,
      });
      await put(store, one, waits, ended(one, now, due.record));
      assert.deepEqual(await store.takeDue(10, 60_000), { records: [], left: 0, nextDueAt: null });
    },
  },
  {
    name: "a write ends the hiding of what was taken",
    async run(rig) {
      const store = await rig.open();
      const first = await put(store, one, null, accepted(one, store.now(one)));
      assert.deepEqual(await takenKeys(store, 10, HOUR_MS), [one]);
      const leased = await put(store, one, first, begun(one, store.now(one), first.record, 2 * HOUR_MS));
      const { records, nextDueAt } = await store.takeDue(10, HOUR_MS);
      assert.deepEqual(records, []);
      assert.equal(nextDueAt, indexOf(one, leased.record).dueAt);
      const again = ended(one, store.now(one), first.record, { kind: "released" });
      await put(store, one, leased, again);
      assert.deepEqual(await takenKeys(store, 10, HOUR_MS), [one]);
      assert.deepEqual(await takenKeys(store, 10, HOUR_MS), []);
    },
  },
  {
    name: "a write that leaves its record's time ends the hiding too",
    async run(rig) {
      const store = await rig.open();
      const first = await put(store, one, null, accepted(one, store.now(one)));
      assert.deepEqual(await takenKeys(store, 10, HOUR_MS), [one]);
      await put(store, one, first, { ...first.record, signedAt: first.record.signedAt + 1 });
      assert.deepEqual(await takenKeys(store, 10, HOUR_MS), [one]);
      assert.deepEqual(await takenKeys(store, 10, HOUR_MS), []);
    },
  },
  {
    name: "what comes out of hiding has waited since then, not since it was due first",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(one);
      await put(store, one, null, accepted(one, now - 10_000));
      assert.deepEqual(await takenKeys(store, 10, SHORT_MS), [one]);
      await put(store, two, null, accepted(two, store.now(two)));
      await rig.advance(SHORT_MS + 100);
      assert.ok(((await countsOf(store)).oldestDueAt ?? 0) >= now);
      assert.deepEqual(await takenKeys(store, 1, HOUR_MS), [two]);
      assert.deepEqual(await takenKeys(store, 1, HOUR_MS), [one]);
    },
  },
  {
    name: "a lease that lapses is found like everything that is due",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(one);
      const first = await put(store, one, null, accepted(one, now));
      const leased = await put(store, one, first, begun(one, now, first.record, SHORT_MS));
      assert.deepEqual(await takenKeys(store, 10, 60_000), []);
      await expectCounts(store, { running: 1, oldestDueAt: null });
      await rig.advance(SHORT_MS + 100);
      await expectCounts(store, { running: 1, oldestDueAt: now + SHORT_MS });
      const { records } = await store.takeDue(10, 60_000);
      expectSame(records[0], leased);
    },
  },
  {
    name: "processes that look at one time never take the same record",
    async run(rig) {
      const stores = [await rig.open(), await rig.open(), await rig.open()];
      const [store] = stores;
      if (store === undefined) throw new Error("no store");
      const keys = await putDue(store, 60);
      const taken: string[] = [];
      for (let looks = 1; taken.length < keys.length; looks++) {
        const found = await Promise.all(stores.map((each) => takenKeys(each, 5, 60_000)));
        taken.push(...found.flat());
        assert.ok(looks < 200);
      }
      assert.deepEqual(taken.toSorted(), keys.toSorted());
    },
  },
  {
    name: "an event that was taken by one process cannot be begun by another's older knowledge",
    async run(rig) {
      const [store, other] = [await rig.open(), await rig.open()];
      const acceptedAt = store.now(one);
      const first = await put(store, one, null, accepted(one, acceptedAt));
      assert.deepEqual(await takenKeys(store, 1, 60_000), [one]);
      const leased = await put(store, one, first, begun(one, store.now(one), first.record, HOUR_MS));
      // The other one may know the store's time less exactly.
      const now = Math.max(acceptedAt, other.now(one));
      const late = swapOf(other, one, first, begun(one, now, first.record, HOUR_MS));
      const [result] = await other.swap([late]);
      expectSame(result?.kind === "conflict" ? result.current : null, leased);
    },
  },
  {
    name: "a time that is further away than when it was written counts as due",
    needs: "distrustsClock",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(one);
      const record = accepted(one, now, { delayMs: 1_000 });
      // As it is when another slot of the record was written by a clock that was an hour ahead.
      await put(store, one, null, record, {
        index: { ...indexOf(one, record), dueAt: now + HOUR_MS, dueInMs: 1_000 },
      });
      await put(store, two, null, accepted(two, now, { delayMs: HOUR_MS }));
      assert.deepEqual(await takenKeys(store, 10, 60_000), [one]);
      assert.deepEqual(await takenKeys(store, 10, 60_000), []);
    },
  },
  {
    name: "what is due by a time that is too far away has waited since now, and is not to come later",
    needs: "distrustsClock",
    async run(rig) {
      const store = await rig.open();
      const record = accepted(one, store.now(one), { delayMs: 1_000 });
      const index = { ...indexOf(one, record), dueAt: store.now(one) + HOUR_MS, dueInMs: 1_000 };
      await put(store, one, null, record, { index });
      assert.equal((await countsOf(store)).oldestDueAt, store.now(one));
      assert.equal((await store.takeDue(0, 60_000)).nextDueAt, null);
    },
  },
  {
    name: "a time that is up to 5 s further away than when it was written is believed",
    needs: "distrustsClock",
    async run(rig) {
      const store = await rig.open();
      const record = accepted(one, store.now(one), { delayMs: 1_000 });
      const dueAt = store.now(one) + 5_500;
      await put(store, one, null, record, { index: { ...indexOf(one, record), dueAt, dueInMs: 1_000 } });
      assert.deepEqual(await store.takeDue(10, 60_000), { records: [], left: 0, nextDueAt: dueAt });
    },
  },
  {
    name: "an announced write wakes another process",
    needs: "announces",
    async run(rig) {
      const [store, other] = [await rig.open(), await rig.open()];
      let wake = (): void => {};
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const end = await other.onDue?.(() => {
        wake();
        return true;
      });
      if (end === undefined) assert.fail("it has no onDue");
      await put(store, one, null, accepted(one, store.now(one)), { announce: true });
      await woken;
      assert.deepEqual(await takenKeys(other, 10, 60_000), [one]);
      await end();
    },
  },
];
