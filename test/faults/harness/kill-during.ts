import { Worker } from "node:worker_threads";
import type { SqliteHandle } from "@payhooks/core/sqlite";
import { around } from "./around.ts";
import type { ChildConfig } from "./child-config.ts";

interface Statement {
  run(...parameters: readonly unknown[]): unknown;
}

/** Commits that a process does in peace before it is killed. */
const COMMITS_BEFORE = 12;

/**
 * The same handle, but the process is killed while SQLite is in the middle of a checkpoint, or of the transaction that
 * prunes. SQLite keeps the thread that it is called from, so it is another one that kills.
 */
export function withKillDuring(handle: SqliteHandle, during: ChildConfig["killDuring"]): SqliteHandle {
  if (during === undefined) return handle;
  const { what, afterUs } = during;
  const killer = startKiller(afterUs);
  let commits = 0;
  return {
    exec(sql) {
      const answer = handle.exec(sql);
      if (sql === "COMMIT" && ++commits === COMMITS_BEFORE && what === "checkpoint") {
        killer();
        for (;;) handle.exec("PRAGMA wal_checkpoint(RESTART)");
      }
      return answer;
    },
    prepare(sql) {
      const statement = handle.prepare(sql) as Statement;
      if (what !== "pruning" || !sql.startsWith("DELETE FROM records")) return statement;
      return around(statement, {
        run(...parameters) {
          // In a transaction that is not committed, or just so.
          if (commits >= COMMITS_BEFORE) killer();
          return statement.run(...parameters);
        },
      });
    },
    close: () => handle.close(),
  };
}

/** A thread that kills this process some time after it is told to. */
function startKiller(afterUs: number): () => void {
  const told = new Int32Array(new SharedArrayBuffer(4));
  const program = `
    const { workerData: { told, afterUs } } = require("node:worker_threads");
    Atomics.wait(told, 0, 0);
    const end = performance.now() + afterUs / 1000;
    while (performance.now() < end);
    process.kill(process.pid, "SIGKILL");`;
  const killerThread = new Worker(program, { eval: true, workerData: { told, afterUs } });
  killerThread.unref();
  return () => {
    Atomics.store(told, 0, 1);
    Atomics.notify(told, 0);
  };
}
