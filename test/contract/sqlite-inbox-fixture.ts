import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RecordStore } from "@payhooks/core/inbox";
import { type SqliteHandle, sqliteStore } from "@payhooks/core/sqlite";
import { type FixtureKind, type InboxFixture, withOverrides } from "./inbox-processes.ts";
import { skippingClock } from "./skipping-clock.ts";

/** The contract does not test the death of a machine. So the file can be on a disk in memory, which saves a thousand fsyncs. */
const MEMORY_DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export const sqliteKind: FixtureKind = { timeTravel: true, endsWithProcess: false };

/** Every process opens the file anew. Commits come at the end of a turn, so that time moves on only after some. */
export function sqliteInboxFixture(open: (file: string) => SqliteHandle): InboxFixture {
  const { clock, advance } = skippingClock();
  const folder = mkdtempSync(join(MEMORY_DISK, "payhooks-contract-"));
  const handles = new Set<SqliteHandle>();
  return {
    ...sqliteKind,
    clock,
    async advance(ms) {
      // The work that was begun before time moves on takes some commits, and each commit takes a turn.
      for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
      await advance(ms);
    },
    leaseMs: 30_000,
    open() {
      const database = open(join(folder, "inbox.db"));
      handles.add(database);
      const store = sqliteStore(database, { clock });
      return {
        store: withOverrides<RecordStore>(store, {
          async close() {
            handles.delete(database);
            await store.close();
          },
        }),
      };
    },
    async close() {
      for (const handle of handles) handle.close();
      rmSync(folder, { recursive: true });
    },
  };
}
