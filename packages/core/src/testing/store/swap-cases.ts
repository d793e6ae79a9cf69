/** Cases about compare-and-swap, by which everything is written. */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Swap } from "../../inbox/contract/store.ts";
import { labelOf } from "../../inbox/record/label.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import type { StoreCase } from "./fixture.ts";
import {
  acceptedRecord,
  begunRecord,
  DAY_MS,
  decidedRecord,
  endedRecord,
  keyOf,
  referenceRecord,
  SHORT_MS,
} from "./records.ts";
import {
  expectCounts,
  expectSame,
  type PutRecord,
  put,
  putAll,
  readOne,
  swapAll,
  swapOf,
  takeOfBothLanes,
} from "./writes.ts";

const [firstKey, secondKey, thirdKey, fourthKey] = [keyOf(1), keyOf(2), keyOf(3), keyOf(4)] as const;

export const swapCases: readonly StoreCase[] = [
  {
    name: "every process reads a record as it was last written, with its version",
    async run(rig) {
      const [store, otherStore] = [await rig.open(), await rig.open()];
      const first = await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      expectSame(await readOne(otherStore, firstKey), first);
      const second = await put(
        otherStore,
        firstKey,
        first,
        begunRecord(firstKey, otherStore.now(firstKey), first.record, DAY_MS),
      );
      expectSame(await readOne(store, firstKey), second);
      const third = await put(
        store,
        firstKey,
        second,
        endedRecord(firstKey, store.now(firstKey), first.record),
      );
      expectSame(await readOne(otherStore, firstKey), third);
    },
  },
  {
    name: "a record without events can be leased again and again, and has a due time only while it is leased",
    async run(rig) {
      const store = await rig.open();
      let last: PutRecord | null = null;
      for (let turn = 0; turn < 3; turn++) {
        const now = store.now(firstKey);
        const free: IdempotencyRecord = { ...referenceRecord(`${turn}`, now, DAY_MS), signedAt: turn };
        const lease = { slot: "", token: `run ${turn}`, until: now + DAY_MS, originalLengthMs: DAY_MS };
        for (const record of [{ ...free, lease }, free]) {
          last = await put(store, firstKey, last, record);
          expectSame(await readOne(store, firstKey), last);
          const conflict = await store.swap([swapOf(store, firstKey, null, record)]);
          assert.equal(conflict[0]?.kind, "conflict");
          if (conflict[0].kind === "conflict") expectSame(conflict[0].current, last);
          const { nextDueAt } = await takeOfBothLanes(store, 0, 0);
          assert.equal(nextDueAt !== null, record.lease !== null);
        }
      }
    },
  },
  {
    name: "records are returned in the order of the requested keys, with null for a missing record",
    async run(rig) {
      const store = await rig.open();
      const first = await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      const third = await put(store, thirdKey, null, acceptedRecord(thirdKey, store.now(thirdKey)));
      const [a, b, c] = await store.read([thirdKey, secondKey, firstKey]);
      expectSame(a, third);
      assert.equal(b, null);
      expectSame(c, first);
      assert.deepEqual(await store.read([]), []);
      assert.deepEqual(await store.swap([]), []);
    },
  },
  {
    name: "a write with the wrong expected version changes nothing, and its conflict returns the current record",
    async run(rig) {
      const store = await rig.open();
      const record = acceptedRecord(firstKey, store.now(firstKey));
      const unknownVersion = swapOf(
        store,
        firstKey,
        { key: firstKey, version: "nobodyknows00", record },
        record,
      );
      assert.deepEqual(await store.swap([unknownVersion]), [{ kind: "conflict", current: null }]);
      assert.equal(await readOne(store, firstKey), null);

      const first = await put(store, firstKey, null, record);
      const second = await put(
        store,
        firstKey,
        first,
        begunRecord(firstKey, store.now(firstKey), record, DAY_MS),
      );
      for (const expected of [first, null]) {
        const [result] = await store.swap([
          swapOf(store, firstKey, expected, endedRecord(firstKey, store.now(firstKey), record)),
        ]);
        assert.equal(result?.kind, "conflict");
        expectSame(result?.kind === "conflict" ? result.current : null, second);
      }
      expectSame(await readOne(store, firstKey), second);
      await expectCounts(store, { waiting: 0, running: 1 });
    },
  },
  {
    name: "a write that is sent again conflicts, and the conflict returns its own version",
    async run(rig) {
      const store = await rig.open();
      const swap = swapOf(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      assert.deepEqual(await store.swap([swap]), [{ kind: "written" }]);
      const [again] = await store.swap([swap]);
      expectSame(again?.kind === "conflict" ? again.current : null, swap);
      await expectCounts(store, { waiting: 1 });
    },
  },
  {
    name: "each write of a call succeeds or conflicts on its own",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      const knownRecord = await put(store, secondKey, null, acceptedRecord(secondKey, now));
      const [first, stale, ahead, fourth] = [
        swapOf(store, firstKey, null, acceptedRecord(firstKey, now)),
        swapOf(store, secondKey, null, acceptedRecord(secondKey, now)),
        swapOf(store, thirdKey, null, acceptedRecord(thirdKey, now), { at: now + 60_000 }),
        swapOf(store, fourthKey, null, acceptedRecord(fourthKey, now)),
      ] as const;
      const results = await swapAll(store, [first, stale, ahead, fourth]);
      assert.deepEqual(
        results.map(({ kind }) => kind),
        ["written", "conflict", "conflict", "written"],
      );
      const [, conflict, refused] = results;
      expectSame(conflict?.kind === "conflict" ? conflict.current : null, knownRecord);
      assert.deepEqual(refused, { kind: "conflict", current: null });
      const [a, b, c, d] = await store.read([firstKey, secondKey, thirdKey, fourthKey]);
      expectSame(a, first);
      expectSame(b, knownRecord);
      assert.equal(c, null);
      expectSame(d, fourth);
      await expectCounts(store, { waiting: 3 });
    },
  },
  {
    name: "hundreds of records are written in one call, and read in one call",
    async run(rig) {
      const store = await rig.open();
      const records = new Map<string, IdempotencyRecord>();
      for (let n = 0; n < 300; n++) records.set(keyOf(n), acceptedRecord(keyOf(n), store.now(keyOf(n))));
      const writtenRecords = await putAll(store, records);
      const storedRecords = await store.read([...writtenRecords.keys()]);
      assert.equal(storedRecords.length, 300);
      [...writtenRecords.values()].forEach((record, index) => {
        expectSame(storedRecords[index], record);
      });
      await expectCounts(store, { waiting: 300 });
    },
  },
  {
    name: "if several processes write from the same version, exactly one write succeeds",
    async run(rig) {
      const stores = [await rig.open(), await rig.open(), await rig.open()];
      const [store] = stores;
      if (store === undefined) throw new Error("no store");
      for (let n = 0; n < 10; n++) {
        const key = keyOf(n);
        const before: PutRecord | null =
          n % 2 === 0 ? null : await put(store, key, null, acceptedRecord(key, store.now(key)));
        const swaps: readonly Swap[] = stores.map((each) =>
          swapOf(each, key, before, acceptedRecord(key, each.now(key), { delayMs: n })),
        );
        const results = await Promise.all(
          stores.map(async (each, index) => (await each.swap(swaps.slice(index, index + 1)))[0]),
        );
        const winners = swaps.filter((_, index) => results[index]?.kind === "written");
        assert.equal(winners.length, 1);
        for (const result of results) {
          if (result?.kind === "written" || winners[0] === undefined) continue;
          expectSame(result?.kind === "conflict" ? result.current : null, winners[0]);
        }
      }
      await expectCounts(store, { waiting: 10 });
    },
  },
  {
    name: "a write conflicts if its time is ahead of the store's clock, or more than 5 s behind it",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      const record = acceptedRecord(firstKey, now);
      for (const at of [now + 1_000, now - 6_000]) {
        assert.deepEqual(await store.swap([swapOf(store, firstKey, null, record, { at })]), [
          { kind: "conflict", current: null },
        ]);
      }
      const first = await put(store, firstKey, null, record, { at: now - 3_000 });
      for (const at of [now + 60_000, now - 60_000]) {
        const [result] = await store.swap([
          swapOf(store, firstKey, first, endedRecord(firstKey, now, record), { at }),
        ]);
        expectSame(result?.kind === "conflict" ? result.current : null, first);
      }
      expectSame(await readOne(store, firstKey), first);
      await put(store, firstKey, first, endedRecord(firstKey, now, record));
    },
  },
  {
    name: "a finished record expires at its time, and counts as missing from then on",
    async run(rig) {
      const store = await rig.open();
      const short = { retentionMs: SHORT_MS };
      const now = store.now(firstKey);
      const finished = await put(
        store,
        firstKey,
        null,
        endedRecord(firstKey, now, acceptedRecord(firstKey, now, short)),
      );
      const expired = await put(
        store,
        secondKey,
        null,
        endedRecord(secondKey, now, acceptedRecord(secondKey, now, short)),
      );
      const waiting = await put(store, thirdKey, null, acceptedRecord(thirdKey, now, short));
      expectSame(await readOne(store, firstKey), finished);
      await rig.advance(SHORT_MS + 100);
      assert.deepEqual(await store.read([firstKey, secondKey]), [null, null]);
      expectSame(await readOne(store, thirdKey), waiting);
      assert.deepEqual(
        await store.swap([
          swapOf(store, secondKey, expired, acceptedRecord(secondKey, store.now(secondKey))),
        ]),
        [{ kind: "conflict", current: null }],
      );
      assert.equal(await readOne(store, secondKey), null);
      const replacement = await put(store, firstKey, null, acceptedRecord(firstKey, store.now(firstKey)));
      expectSame(await readOne(store, firstKey), replacement);
      await expectCounts(store, { waiting: 2, held: 0 });
    },
  },
  {
    name: "a finished record does not expire at its old time if it gets new work or a later expiry",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      const short = endedRecord(firstKey, now, acceptedRecord(firstKey, now, { retentionMs: SHORT_MS }));
      const withNewWork = await put(
        store,
        firstKey,
        await put(store, firstKey, null, short),
        acceptedRecord(firstKey, now, { status: "FAILED", retentionMs: SHORT_MS }, short),
      );
      const withLaterExpiry = await put(store, secondKey, await put(store, secondKey, null, short), {
        ...short,
        expiresAt: now + DAY_MS,
      });
      await rig.advance(SHORT_MS + 100);
      expectSame(await readOne(store, firstKey), withNewWork);
      expectSame(await readOne(store, secondKey), withLaterExpiry);
      await expectCounts(store, { held: 1, heldBy: [["conflict", 1]] });
      await put(
        store,
        firstKey,
        withNewWork,
        decidedRecord(firstKey, store.now(firstKey), withNewWork.record, "discard"),
      );
      await rig.advance(SHORT_MS + 100);
      assert.equal(await readOne(store, firstKey), null);
      await expectCounts(store, { held: 0, heldBy: [] });
    },
  },
  {
    name: "the record of a reference has no events, expires at its time, and is never due",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(firstKey);
      const takenReference = await put(store, firstKey, null, referenceRecord(thirdKey, now, SHORT_MS));
      await put(store, secondKey, null, referenceRecord(fourthKey, now, SHORT_MS));
      const [again] = await store.swap([
        swapOf(store, firstKey, null, referenceRecord(fourthKey, now, DAY_MS)),
      ]);
      expectSame(again?.kind === "conflict" ? again.current : null, takenReference);
      const prolonged = await put(store, firstKey, takenReference, referenceRecord(thirdKey, now, DAY_MS));
      assert.deepEqual(await takeOfBothLanes(store, 10, 1_000), { records: [], left: 0, nextDueAt: null });
      assert.deepEqual(await store.list({}, null, 10), { events: [], next: null });
      await expectCounts(store, { waiting: 0, held: 0, oldestDueAt: null });
      await rig.advance(SHORT_MS + 100);
      expectSame(await readOne(store, firstKey), prolonged);
      assert.equal(await readOne(store, secondKey), null);
      await put(store, secondKey, null, referenceRecord(firstKey, store.now(secondKey), SHORT_MS));
    },
  },
  {
    name: "long and unusual texts are stored unchanged, and are found by their labels",
    async run(rig) {
      const store = await rig.open();
      const bodies = [
        Buffer.from(JSON.stringify({ referenceId: "r".repeat(20_000) })),
        Buffer.from('{"referenceId":"a\\u0000b\\ud800c"}'),
        Buffer.concat([randomBytes(4_000), Buffer.from("\n\0\r\n'\"\\")]),
        Buffer.alloc(0),
      ];
      const oddTexts = [
        "nul \0 and \ud800 half",
        "\udc00",
        "'; DROP TABLE records; --",
        "é".repeat(500),
        "{tag}\n:*?[a]",
      ];
      let n = 0;
      for (const content of bodies) {
        for (const text of oddTexts) {
          const key = keyOf(++n);
          const now = store.now(key);
          const sample = {
            tenant: text,
            id: `${text}${n}`,
            name: text,
            status: text,
            referenceId: text,
            content,
            signature: text,
          };
          const open = await put(
            store,
            key,
            null,
            acceptedRecord(key, now, { ...sample, held: "malformed" }),
          );
          expectSame(await readOne(store, key), open);
          const { events } = await store.list(
            { state: "held", tenant: labelOf(text), event: labelOf(text) },
            null,
            10,
          );
          assert.deepEqual(
            events.map(({ eventId }) => eventId.slice(0, 32)),
            [key],
          );
          expectSame(events[0]?.versioned, open);
          const closedRecord = await put(store, key, open, decidedRecord(key, now, open.record, "discard"));
          expectSame(await readOne(store, key), closedRecord);
        }
      }
      const long = keyOf(++n);
      const payment = { referenceId: "r".repeat(20_000), tenant: "long" };
      await put(store, long, null, acceptedRecord(long, store.now(long), payment));
      const page = await store.list({ referenceId: labelOf(payment.referenceId) }, null, 10);
      assert.deepEqual(
        page.events.map(({ eventId }) => eventId.slice(0, 32)),
        [long],
      );
    },
  },
];
