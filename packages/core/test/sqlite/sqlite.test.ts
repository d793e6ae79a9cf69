/** Tests what the store of SQLite does beyond the contract of stores: its transactions, its disk, and other processes. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { RecordStore, Swap } from "../../src/inbox/contract/store.ts";
import { sqliteStore } from "../../src/sqlite/store.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import { sendCanary } from "../../src/testing/store/canaries.ts";
import { acceptedRecord, DAY_MS, endedRecord, keyOf } from "../../src/testing/store/records.ts";
import { expectSame, put, readOne, swapOf, takeOfBothLanes } from "../../src/testing/store/writes.ts";
import {
  ask,
  byKey,
  fates,
  newFile,
  openFile,
  openStore,
  type TestDatabase,
  waiting,
  watched,
} from "./database-files.ts";

// Child processes, on a machine that does other things too.
vi.setConfig({ testTimeout: 30_000 });

const DRIVER_ERRORS = { full: "SQLITE_FULL", io: "SQLITE_IOERR_FSYNC" } as const;

/** A handle whose next commit goes wrong, before it or after it, when that is asked for. */
function failing(database: TestDatabase): {
  readonly handle: TestDatabase;
  failCommit(error: keyof typeof DRIVER_ERRORS, when: "before" | "after"): void;
} {
  let next: { readonly code: string; readonly when: "before" | "after" } | null = null;
  const handle: TestDatabase = {
    exec(sql) {
      if (sql !== "COMMIT" || next === null) return database.exec(sql);
      const { code, when } = next;
      next = null;
      if (when === "after") database.exec(sql);
      throw Object.assign(new Error("the disk"), { code });
    },
    prepare: (sql) => database.prepare(sql),
    close: () => database.close(),
  };
  return {
    handle,
    failCommit(error, when) {
      next = { code: DRIVER_ERRORS[error], when };
    },
  };
}

const swapsOf = (store: RecordStore, count: number): readonly Swap[] =>
  Array.from({ length: count }, (_, n) => waiting(store, n)).toSorted(byKey);

describe("the writes of one call", () => {
  it("share one transaction", async () => {
    const { handle, done } = watched(openFile(newFile()));
    const store = await openStore(handle);
    done.length = 0;
    expect(new Set(await fates(store, swapsOf(store, 50)))).toEqual(new Set(["written"]));
    expect(done).toEqual(["BEGIN IMMEDIATE", "COMMIT"]);
  });

  it("do not fail with one that the file does not take: that one alone is refused", async () => {
    const database = openFile(newFile());
    const store = await openStore(database);
    database.exec(`CREATE TRIGGER picky BEFORE INSERT ON events WHEN new.id = 'tx-2'
      BEGIN SELECT RAISE(ABORT, 'not that one'); END`);
    const swaps = swapsOf(store, 4);
    const results = await store.swap(swaps);
    const refused = results.filter(({ kind }) => kind === "refused");
    expect(refused).toEqual([{ kind: "refused", cause: expect.any(Error) }]);
    expect(results.filter(({ kind }) => kind === "written")).toHaveLength(3);
    for (const [at, swap] of swaps.entries()) {
      if (results[at]?.kind === "written") expectSame(await readOne(store, swap.key), swap);
      else expect([swap.key, await readOne(store, swap.key)]).toEqual([keyOf(2), null]);
    }
    expect(await store.counts()).toMatchObject({ waiting: 3 });
  });

  it("write the others although one record cannot be read", async () => {
    const database = openFile(newFile());
    const store = await openStore(database);
    const swap = waiting(store, 1);
    await fates(store, [swap]);
    database.exec("UPDATE records SET text = '9 of the year 2050'");
    const again = waiting(store, 1);
    const results = await store.swap([again, waiting(store, 2)].toSorted(byKey));
    const unreadable = { version: swap.version, record: { unreadable: expect.stringMatching(/format/) } };
    expect(results).toContainEqual({ kind: "conflict", current: unreadable });
    expect(results).toContainEqual({ kind: "written" });
    const { records } = await takeOfBothLanes(store, 10, 1_000);
    expect(records).toContainEqual({ key: keyOf(1), ...unreadable });
  });
});

describe("a commit that fails", () => {
  it.each(["before", "after"] as const)(
    "on the disk %s it counted: its fate is unknown, and the same writes tell it",
    async (when) => {
      const { handle, failCommit } = failing(openFile(newFile()));
      const store = await openStore(handle);
      const swaps = swapsOf(store, 3);
      failCommit("io", when);
      expect(await fates(store, swaps)).toEqual(["unknown", "unknown", "unknown"]);
      const again = await store.swap(swaps);
      for (const [at, swap] of swaps.entries()) {
        const result = again[at];
        expect(result?.kind).toBe(when === "before" ? "written" : "conflict");
        if (result?.kind === "conflict") expect(result.current?.version).toBe(swap.version);
      }
      expect(await store.counts()).toMatchObject({ waiting: 3 });
    },
  );

  it("for want of room writes nothing, and says so", async () => {
    const { handle, failCommit } = failing(openFile(newFile()));
    const store = await openStore(handle);
    const swaps = swapsOf(store, 3);
    failCommit("full", "before");
    expect(await fates(store, swaps)).toEqual(["not-written", "not-written", "not-written"]);
    expect(await store.counts()).toMatchObject({ waiting: 0 });
    expect(await fates(store, swaps)).toEqual(["written", "written", "written"]);
  });
});

describe("a full disk", () => {
  it("takes nothing more and keeps its records; a canary shows that; it goes on when there is room again", async () => {
    const database = openFile(newFile());
    const store = await openStore(database);
    await sendCanary(store);
    database.exec(`PRAGMA max_page_count = ${Number(ask(database, "PRAGMA page_count")) + 60}`);
    const written: Swap[] = [];
    const rejected: Swap[] = [];
    for (let n = 0; n < 40; n++) {
      const swap = waiting(store, n, Buffer.from(`"${"x".repeat(8_000)}"`));
      const [fate] = await fates(store, [swap]);
      expect(["written", "not-written"]).toContain(fate);
      (fate === "written" ? written : rejected).push(swap);
    }
    expect([written.length > 3, rejected.length > 3]).toEqual([true, true]);
    await expect(sendCanary(store)).rejects.toThrow(/full/);
    for (const swap of rejected) expect(await readOne(store, swap.key)).toBeNull();
    expect(await store.counts()).toMatchObject({ waiting: written.length });
    database.exec("PRAGMA max_page_count = 1000000");
    await sendCanary(store);
    expect(new Set(await fates(store, rejected.toSorted(byKey)))).toEqual(new Set(["written"]));
    for (const swap of [...written, ...rejected]) expectSame(await readOne(store, swap.key), swap);
    const { records } = await takeOfBothLanes(store, 100, 60_000);
    expect(records.map(({ key }) => key).toSorted()).toEqual(
      [...written, ...rejected].map(({ key }) => key).toSorted(),
    );
    expect(ask(database, "PRAGMA integrity_check")).toBe("ok");
  });
});

describe("a file that may no longer be written", () => {
  it("answers writes with not-written, fails the canary, and can still be read", async () => {
    const database = openFile(newFile());
    const store = await openStore(database);
    const written = waiting(store, 1);
    await fates(store, [written]);
    database.exec("PRAGMA query_only = 1");
    expect(await fates(store, [waiting(store, 2)])).toEqual(["not-written"]);
    const readonly = { code: "ERR_INBOX_UNAVAILABLE", message: expect.stringMatching(/readonly/) };
    await expect(sendCanary(store)).rejects.toThrow(/readonly/);
    await expect(takeOfBothLanes(store, 1, 1_000)).rejects.toMatchObject(readonly);
    expectSame(await readOne(store, keyOf(1)), written);
    expect(await takeOfBothLanes(store, 0, 0)).toMatchObject({ left: 1 });
  });
});

describe("another program that holds the file", () => {
  it("makes writes wait without blocking the event loop, and at the time limit they are not-written", async () => {
    const file = newFile();
    // The same SQLite for both: the system keeps locks by process, so another in this process would not see them.
    const store = await openStore(openFile(file));
    const other = openFile(file);
    onTestFinished(() => void other.close());
    other.exec("BEGIN IMMEDIATE");
    let turns = 0;
    const counter = setInterval(() => turns++, 10);
    const startedAt = performance.now();
    const [result] = await store.swap([waiting(store, 1)]);
    const tookMs = performance.now() - startedAt;
    clearInterval(counter);
    expect(result).toEqual({ kind: "not-written", cause: expect.any(Error) });
    expect(tookMs).toBeGreaterThan(1_000);
    // A loop that hung in SQLite's own waiting would have had next to no turns.
    expect(turns).toBeGreaterThan(20);
    // Reading needs no lock.
    expect(await store.read([keyOf(1)])).toEqual([null]);
    const [swapping, probing] = [store.swap([waiting(store, 1)]), sendCanary(store)];
    await new Promise((resolve) => setImmediate(resolve));
    other.exec("COMMIT");
    expect(await swapping).toEqual([{ kind: "written" }]);
    await probing;
  });

  it("lets all that wait for it share one transaction, in which one that is refused fails alone", async () => {
    const file = newFile();
    const { handle, done } = watched(openFile(file));
    const store = await openStore(handle);
    handle.exec(`CREATE TRIGGER picky BEFORE INSERT ON events WHEN new.id = 'tx-99'
      BEGIN SELECT RAISE(ABORT, 'not that one'); END`);
    const other = openFile(file);
    onTestFinished(() => void other.close());
    const commitsOf = async (numbers: readonly number[]): Promise<number> => {
      other.exec("BEGIN IMMEDIATE");
      const swapping = numbers.map((n) => fates(store, [waiting(store, n)]));
      await new Promise((resolve) => setImmediate(resolve));
      done.length = 0;
      other.exec("COMMIT");
      expect((await Promise.all(swapping)).flat()).toEqual(
        numbers.map((n) => (n === 99 ? "refused" : "written")),
      );
      return done.filter((sql) => sql === "COMMIT").length;
    };
    expect(await commitsOf([1, 2, 3, 4, 5])).toBe(1);
    expect(await commitsOf([6, 99, 7])).toBe(2);
    expect(await store.counts()).toMatchObject({ waiting: 7 });
  });

  it("makes the start wait, too", async () => {
    const file = newFile();
    const other = openFile(file);
    onTestFinished(() => void other.close());
    other.exec("BEGIN IMMEDIATE");
    const opening = openStore(openFile(file));
    await new Promise((resolve) => setImmediate(resolve));
    other.exec("ROLLBACK");
    const store = await opening;
    expect(await fates(store, [waiting(store, 1)])).toEqual(["written"]);
  });
});

describe("several processes on one file", () => {
  it("started at once on a new file, write each record once and take it once", async () => {
    const file = newFile();
    const log = join(file, "..", "ran.log");
    writeFileSync(log, "");
    const EVENTS = 304;
    const children = [1, 2, 3].map(() =>
      fork(fileURLToPath(new URL("process.ts", import.meta.url)), [file, log, String(EVENTS)], {
        execArgv: ["--conditions=payhooks-source", "--import=tsx"],
        cwd: fileURLToPath(new URL("../../../..", import.meta.url)),
      }),
    );
    onTestFinished(() => {
      for (const child of children) child.kill("SIGKILL");
    });
    const reports = await Promise.all(
      children.map(async (child) => {
        const [outcomes] = (await Promise.race([
          once(child, "message"),
          once(child, "exit").then(([code]) => expect.fail(`a process ended with ${code}`)),
        ])) as [{ readonly written: number; readonly conflict: number }];
        return outcomes;
      }),
    );
    const sum = (outcome: "written" | "conflict"): number =>
      reports.reduce((total, outcomes) => total + outcomes[outcome], 0);
    expect([sum("written"), sum("conflict")]).toEqual([EVENTS, 2 * EVENTS]);
    const ran = (): string[] => readFileSync(log, "utf8").split("\n").filter(Boolean);
    await vi.waitFor(() => expect(ran().length).toBeGreaterThanOrEqual(EVENTS), { timeout: 50_000 });
    const exits = children.map((child) => once(child, "exit"));
    for (const child of children) child.send("stop");
    expect((await Promise.all(exits)).map(([code]) => code)).toEqual([0, 0, 0]);
    expect(ran()).toHaveLength(EVENTS);
    expect(new Set(ran()).size).toBe(EVENTS);
    const store = await openStore(file);
    expect(await store.counts()).toEqual({
      waiting: 0,
      retrying: 0,
      running: 0,
      held: 0,
      heldBy: {},
      oldestDueAt: null,
    });
    expect(ask(file, "PRAGMA integrity_check")).toBe("ok");
  });
});

describe("pruning", () => {
  it("deletes expired records in small steps, with their events, and never waiting ones", async () => {
    const database = openFile(newFile());
    const clock = fakeClock();
    const store = sqliteStore(database, { clock });
    await store.open();
    onTestFinished(() => store.close());
    const now = clock.now();
    const finished = Array.from({ length: 250 }, (_, n) => keyOf(n)).map((key) =>
      swapOf(store, key, null, endedRecord(key, now, acceptedRecord(key, now))),
    );
    expect(new Set(await fates(store, finished.toSorted(byKey)))).toEqual(new Set(["written"]));
    await put(store, keyOf(1_000), null, acceptedRecord(keyOf(1_000), now));
    expect(await store.prune?.(clock.now())).toBe(false);
    await clock.advance(9 * DAY_MS);
    const left: unknown[] = [];
    // Between two steps there is a turn for deliveries.
    let turns = 0;
    const count = (): void => {
      turns++;
      if (left.length < 3) setImmediate(count);
    };
    setImmediate(count);
    for (let more: boolean | undefined = true; more === true; ) {
      more = await store.prune?.(clock.now());
      left.push([
        ask(database, "SELECT count(*) FROM records"),
        ask(database, "SELECT count(*) FROM events"),
      ]);
    }
    expect(left).toEqual([
      [151, 151],
      [51, 51],
      [1, 1],
    ]);
    expect(turns).toBeGreaterThanOrEqual(2);
    expect(await store.counts()).toMatchObject({ waiting: 1 });
  });

  it("takes the events of an expired record along when the record is written anew", async () => {
    const database = openFile(newFile());
    const clock = fakeClock();
    const store = sqliteStore(database, { clock });
    await store.open();
    onTestFinished(() => store.close());
    const key = keyOf(1);
    await put(
      store,
      key,
      null,
      endedRecord(key, clock.now(), acceptedRecord(key, clock.now(), { status: "FAILED" })),
    );
    await clock.advance(9 * DAY_MS);
    await put(store, key, null, acceptedRecord(key, clock.now()));
    expect(ask(database, "SELECT group_concat(status) FROM events")).toBe("SUCCESS");
  });
});

describe("the statements", () => {
  it("read no whole table, however many finished records there are", async () => {
    const database = openFile(newFile());
    const { handle, prepared } = watched(database);
    const store = await openStore(handle);
    await fates(store, swapsOf(store, 3));
    for (const filter of [
      {},
      { state: "held" },
      { state: "finished" },
      { id: "tx-1" },
      { referenceId: "o-1" },
    ] as const) {
      await store.list(filter, { acceptedAt: 1, eventId: "" }, 10);
    }
    await takeOfBothLanes(store, 10, 1_000);
    store.counts();
    await store.prune?.(store.now(""));
    const plans = [...prepared]
      .filter((sql) => /\b(?:records|events)\b/.test(sql))
      .flatMap((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { readonly detail: string }[])
      .map(({ detail }) => detail);
    expect(plans.length).toBeGreaterThan(15);
    expect(plans).toContainEqual(expect.stringMatching(/events_by_reference/));
    expect(plans).toContainEqual(expect.stringMatching(/events_by_id/));
    expect(plans).toContainEqual(expect.stringMatching(/records_by_due_from/));
    expect(plans.filter((detail) => /SCAN (?:records|events)(?! USING)/.test(detail))).toEqual([]);
  });
});
