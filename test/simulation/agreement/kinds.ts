/** The stores that have to agree. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PGlite } from "@electric-sql/pglite";
import Database from "libsql";
import { memoryStore } from "../../../packages/core/src/memory/store.ts";
import type { SqliteHandle } from "../../../packages/core/src/sqlite/handle.ts";
import { sqliteStore } from "../../../packages/core/src/sqlite/store.ts";
import { tableStore } from "../../contract/table-store.ts";
import { SimulatedStore } from "../store.ts";
import { handMovedClock, type Kind } from "./world.ts";

/** The death of a machine is not part of a history. So the file can be on a disk in memory, which saves a thousand fsyncs. */
const MEMORY_DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** Less than the usual 100,000, for which making room takes longer than the history. */
const MAX_RECORDS = 1_000;

/** The store whose answers all others must give. */
export const simulatedKind: Kind = simulated(Number.POSITIVE_INFINITY);

/** The same for stores in which a record that is written counts as due for at most `dueWithinMs`. */
export function simulated(dueWithinMs: number): Kind {
  return {
    name: "the simulated store",
    listsFinished: true,
    distrustsClock: true,
    dueWithinMs,
    make() {
      const { clock, setTime } = handMovedClock();
      const store = new SimulatedStore({ now: clock.now, dueWithinMs });
      return { connect: () => store, setTime, close() {} };
    },
  };
}

/** The store of the documentation, on one database. */
export function tableKind(database: PGlite): Kind {
  let schemas = 0;
  return {
    name: "the store of the documentation",
    listsFinished: false,
    distrustsClock: false,
    make() {
      const { clock, setTime } = handMovedClock();
      const schema = `agreement_${++schemas}`;
      return {
        connect: () => tableStore(database, { schema, now: clock.now }),
        setTime,
        async close() {
          await database.exec(`DROP SCHEMA ${schema} CASCADE`);
        },
      };
    },
  };
}

export const memoryKind: Kind = {
  name: "memory",
  listsFinished: true,
  distrustsClock: true,
  make() {
    const { clock, setTime } = handMovedClock();
    const store = memoryStore({ clock, maxRecords: MAX_RECORDS });
    return { connect: () => store, setTime, close() {} };
  },
};

/** With libsql. A test may change the handle, to prove that the histories find a mistake. */
export function sqliteKind(changeHandle: (handle: SqliteHandle) => SqliteHandle = (handle) => handle): Kind {
  return {
    name: "SQLite",
    listsFinished: true,
    distrustsClock: true,
    make() {
      const { clock, setTime } = handMovedClock();
      const folder = mkdtempSync(join(MEMORY_DISK, "payhooks-agreement-"));
      const open = (): SqliteHandle => new Database(join(folder, "inbox.db")) as SqliteHandle;
      return {
        connect: () => sqliteStore(changeHandle(open()), { clock }),
        setTime,
        close: () => rmSync(folder, { recursive: true }),
      };
    },
  };
}
