/** Cases about everything else that a store does: opening, pruning, and reporting its datasetId and health. */
import assert from "node:assert/strict";
import { canaryKey, endCanary, newCanary } from "../../inbox/record/canary.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import { sendCanary } from "./canaries.ts";
import type { StoreCase } from "./fixture.ts";
import { acceptedRecord, endedRecord, keyOf, SHORT_MS } from "./records.ts";
import { expectCounts, expectSame, put, putAll, readOne, takeOfBothLanes } from "./writes.ts";

export const upkeepCases: readonly StoreCase[] = [
  {
    name: "the store can be opened again and again, and by several processes at the same time",
    async run(rig) {
      const store = rig.connect();
      await Promise.all([store.open(), store.open()]);
      const writtenRecord = await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
      await store.open();
      const others = [rig.connect(), rig.connect()];
      await Promise.all(others.map((other) => other.open()));
      for (const each of [store, ...others]) expectSame(await readOne(each, keyOf(1)), writtenRecord);
    },
  },
  {
    name: "every process on the same data has the same datasetId, even after the others have closed",
    async run(rig) {
      const [store, otherStore] = [await rig.open(), await rig.open()];
      const { datasetId } = store;
      assert.match(datasetId, /^[\w-]{8,}$/);
      assert.equal(otherStore.datasetId, datasetId);
      const writtenRecord = await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
      await rig.end(store);
      await rig.end(otherStore);
      const again = await rig.open();
      assert.equal(again.datasetId, datasetId);
      expectSame(await readOne(again, keyOf(1)), writtenRecord);
    },
  },
  {
    name: "a store on other data has another datasetId, and none of the records",
    async run(rig) {
      const store = await rig.open();
      const emptyStore = await (await rig.onOtherData()).open();
      assert.notEqual(emptyStore.datasetId, store.datasetId);
      await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
      assert.equal(await readOne(emptyStore, keyOf(1)), null);
      assert.deepEqual(await takeOfBothLanes(emptyStore, 10, 1_000), {
        records: [],
        left: 0,
        nextDueAt: null,
      });
    },
  },
  {
    name: "a canary is taken and ended like an event, but is in no list or count",
    async run(rig) {
      const store = await rig.open();
      const [key, otherKey] = [canaryKey("one"), canaryKey("another")];
      const now = store.now(key);
      const canary = await put(store, key, null, newCanary(now, true));
      const notDue = await put(store, otherKey, null, newCanary(now, false));
      await expectCounts(store, { waiting: 0, retrying: 0, running: 0, held: 0 });
      for (const state of ["waiting", "running", "held"] as const) {
        assert.deepEqual(await store.list({ state }, null, 10), { events: [], next: null });
      }
      const { records, left } = await takeOfBothLanes(store, 10, 60_000);
      assert.deepEqual([records.map((record) => record.key), left], [[key], 0]);
      expectSame(records[0], canary);
      for (const record of [canary, notDue]) {
        await put(store, record.key, record, endCanary(record.record, store.now(record.key)));
        assert.equal(await readOne(store, record.key), null);
      }
      await sendCanary(store);
      await expectCounts(store, { waiting: 0, held: 0, oldestDueAt: null });
      assert.deepEqual(await takeOfBothLanes(store, 10, 1_000), { records: [], left: 0, nextDueAt: null });
    },
  },
  {
    name: "the store's clock advances with time",
    async run(rig) {
      const store = await rig.open();
      const before = store.now(keyOf(1));
      await rig.advance(200);
      const passed = store.now(keyOf(1)) - before;
      assert.ok(passed >= 150);
      assert.ok(passed < 10_000);
    },
  },
  {
    name: "every process reads the same notes, and a note is replaced as a whole",
    async run(rig) {
      const [store, otherStore] = [await rig.open(), await rig.open()];
      if (store.readNote === undefined) return;
      assert.equal(await store.readNote("first"), null);
      await store.writeNote?.("first", "a long text \u{1F511} with several\nlines");
      await store.writeNote?.("second", "2");
      await store.writeNote?.("first", "1");
      for (const each of [store, otherStore]) {
        assert.deepEqual([await each.readNote?.("first"), await each.readNote?.("second")], ["1", "2"]);
      }
      await otherStore.writeNote?.("first", "x".repeat(16_384));
      await rig.end(otherStore);
      await rig.end(store);
      const again = await rig.open();
      assert.equal((await again.readNote?.("first"))?.length, 16_384);
      assert.equal(await (await (await rig.onOtherData()).open()).readNote?.("first"), null);
      assert.deepEqual(await takeOfBothLanes(again, 10, 1_000), { records: [], left: 0, nextDueAt: null });
    },
  },
  {
    name: "pruning removes only expired records, and comes to an end",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(keyOf(0));
      const doneRecord = (key: string, retentionMs?: number): IdempotencyRecord =>
        endedRecord(key, now, acceptedRecord(key, now, retentionMs === undefined ? {} : { retentionMs }));
      const expiring = Array.from({ length: 600 }, (_, n) => keyOf(n));
      await putAll(store, new Map(expiring.map((key) => [key, doneRecord(key, SHORT_MS)])));
      const [kept, waiting] = [keyOf(1_001), keyOf(1_002)];
      const finished = await put(store, kept, null, doneRecord(kept));
      const open = await put(store, waiting, null, acceptedRecord(waiting, now, { retentionMs: SHORT_MS }));
      await rig.advance(SHORT_MS + 100);
      for (let steps = 1; (await store.prune?.(store.now(keyOf(0)))) === true; steps++)
        assert.ok(steps < 1_000);
      assert.equal(
        (await store.read(expiring)).every((found) => found === null),
        true,
      );
      expectSame(await readOne(store, kept), finished);
      expectSame(await readOne(store, waiting), open);
      await expectCounts(store, { waiting: 1, held: 0 });
      const [again = ""] = expiring;
      await put(store, again, null, acceptedRecord(again, store.now(again)));
    },
  },
];
