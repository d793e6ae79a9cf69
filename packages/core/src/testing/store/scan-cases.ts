/** Cases about scans, which find every record. */
import assert from "node:assert/strict";
import type { DueRecord, RecordStore, Scanned } from "../../inbox/contract/store.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import type { StoreCase } from "./fixture.ts";
import { accepted, begun, ended, HOUR_MS, keyOf, referenceRecord, SHORT_MS } from "./records.ts";
import { expectSame, put, putAll } from "./writes.ts";

/** Scans all pages, and calls `afterPage` after each. */
async function scanAll(
  store: RecordStore,
  limit: number,
  afterPage: () => Promise<void> = async () => {},
): Promise<ReadonlyMap<string, DueRecord>> {
  const found = new Map<string, DueRecord>();
  let cursor: string | null = null;
  for (let pages = 1; ; pages++) {
    const page: Scanned | undefined = await store.scan?.(cursor, limit);
    if (page === undefined) assert.fail("The store has no scan.");
    for (const record of page.records) found.set(record.key, record);
    await afterPage();
    if (page.next === null) return found;
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
      const waiting = (n: number): IdempotencyRecord => accepted(keyOf(n), now);
      const records = new Map<string, IdempotencyRecord>();
      for (let n = 0; n < 60; n++) {
        const key = keyOf(n);
        const kinds = [
          waiting(n),
          begun(key, now, waiting(n), HOUR_MS),
          accepted(key, now, { held: "malformed" }),
          ended(key, now, waiting(n)),
          referenceRecord(keyOf(n + 1), now, HOUR_MS),
        ];
        records.set(key, kinds[n % kinds.length] ?? waiting(n));
      }
      const written = await putAll(store, records);
      const expired = keyOf(1_000);
      await put(store, expired, null, ended(expired, now, accepted(expired, now, { retentionMs: SHORT_MS })));
      await rig.advance(SHORT_MS + 100);
      for (const limit of [7, 1_000]) {
        const found = await scanAll(store, limit);
        assert.deepEqual([...found.keys()].toSorted(), [...written.keys()].toSorted());
        for (const [key, one] of written) expectSame(found.get(key), one);
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
      const written = await putAll(store, new Map(keys.map((key) => [key, accepted(key, now)])));
      let at = 0;
      const found = await scanAll(store, 5, async () => {
        const key = keys[(at++ * 7) % keys.length] ?? "";
        const before = written.get(key);
        if (before === undefined || at > keys.length) return;
        await put(store, key, before, ended(key, store.now(key), before.record));
        await put(store, keyOf(2_000 + at), null, accepted(keyOf(2_000 + at), store.now(key)));
      });
      for (const key of keys) assert.ok(found.has(key));
    },
  },
];
