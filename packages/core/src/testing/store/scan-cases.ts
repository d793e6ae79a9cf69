/** Cases about scans, which find every record. */
import assert from "node:assert/strict";
import type { DueRecord, RecordStore, ScanPage } from "../../inbox/contract/store.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import type { StoreCase } from "./fixture.ts";
import {
  acceptedRecord,
  begunRecord,
  endedRecord,
  HOUR_MS,
  keyOf,
  referenceRecord,
  SHORT_MS,
} from "./records.ts";
import { expectSame, put, putAll } from "./writes.ts";

/** Scans all pages, and calls `afterPage` after each. */
async function scanAll(
  store: RecordStore,
  limit: number,
  afterPage: () => Promise<void> = async () => {},
): Promise<ReadonlyMap<string, DueRecord>> {
  const recordByKey = new Map<string, DueRecord>();
  let cursor: string | null = null;
  for (let pages = 1; ; pages++) {
    const page: ScanPage | undefined = await store.scan?.(cursor, limit);
    if (page === undefined) assert.fail("The store has no scan.");
    for (const record of page.records) recordByKey.set(record.key, record);
    await afterPage();
    if (page.next === null) return recordByKey;
    cursor = page.next;
    assert.ok(pages < 10_000, "The scan does not end.");
  }
}

export const scanCases: readonly StoreCase[] = [
  {
    name: "a scan finds every record that has not expired: waiting, running, held, finished and references",
    needs: "scans",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(keyOf(0));
      const waiting = (n: number): IdempotencyRecord => acceptedRecord(keyOf(n), now);
      const records = new Map<string, IdempotencyRecord>();
      for (let n = 0; n < 60; n++) {
        const key = keyOf(n);
        const kinds = [
          waiting(n),
          begunRecord(key, now, waiting(n), HOUR_MS),
          acceptedRecord(key, now, { held: "malformed" }),
          endedRecord(key, now, waiting(n)),
          referenceRecord(keyOf(n + 1), now, HOUR_MS),
        ];
        records.set(key, kinds[n % kinds.length] ?? waiting(n));
      }
      const writtenRecords = await putAll(store, records);
      const expired = keyOf(1_000);
      await put(
        store,
        expired,
        null,
        endedRecord(expired, now, acceptedRecord(expired, now, { retentionMs: SHORT_MS })),
      );
      await rig.advance(SHORT_MS + 100);
      for (const limit of [7, 1_000]) {
        const scannedRecords = await scanAll(store, limit);
        assert.deepEqual([...scannedRecords.keys()].toSorted(), [...writtenRecords.keys()].toSorted());
        for (const [key, record] of writtenRecords) expectSame(scannedRecords.get(key), record);
      }
    },
  },
  {
    name: "a scan finds every record that exists from its first page to its last, despite writes meanwhile",
    needs: "scans",
    async run(rig) {
      const store = await rig.open();
      const now = store.now(keyOf(0));
      const keys = Array.from({ length: 40 }, (_, n) => keyOf(n));
      const writtenRecords = await putAll(store, new Map(keys.map((key) => [key, acceptedRecord(key, now)])));
      let index = 0;
      const scannedRecords = await scanAll(store, 5, async () => {
        const key = keys[(index++ * 7) % keys.length] ?? "";
        const before = writtenRecords.get(key);
        if (before === undefined || index > keys.length) return;
        await put(store, key, before, endedRecord(key, store.now(key), before.record));
        await put(store, keyOf(2_000 + index), null, acceptedRecord(keyOf(2_000 + index), store.now(key)));
      });
      for (const key of keys) assert.ok(scannedRecords.has(key));
    },
  },
];
