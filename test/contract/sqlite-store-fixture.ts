import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreFixture } from "@payhooks/core/testing/store";
import type { SqliteHandle } from "../../packages/core/src/sqlite/handle.ts";
import { sqliteStore } from "../../packages/core/src/sqlite/store.ts";
import { fakeClock } from "../../packages/core/src/testing/clock.ts";

/** The contract does not test the death of a machine. So the file can be on a disk in memory, which saves a thousand fsyncs. */
const MEMORY_DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A file of its own, which every process opens anew. */
export function sqliteStoreFixture(open: (file: string) => SqliteHandle): StoreFixture {
  const clock = fakeClock();
  const folder = mkdtempSync(join(MEMORY_DISK, "payhooks-contract-"));
  return {
    connect: () => sqliteStore(open(join(folder, "inbox.db")), { clock }),
    advance: (ms) => clock.advance(ms),
    close: async () => rmSync(folder, { recursive: true }),
  };
}
