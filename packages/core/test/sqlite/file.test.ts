/** Files that the store of SQLite opens, makes, or refuses. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../../src/sqlite/store.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import { sendCanary } from "../../src/testing/store/canaries.ts";
import { acceptedRecord, keyOf } from "../../src/testing/store/records.ts";
import { expectSame, put, readOne, swapOf, takeOfBothLanes } from "../../src/testing/store/writes.ts";
import { ask, byKey, fates, newFile, openFile, openStore, waiting } from "./database-files.ts";

const unsuitable = (text: string | RegExp) =>
  expect.objectContaining({
    code: "ERR_SQLITE_UNSUITABLE",
    message: expect.stringMatching(text),
    fix: expect.stringMatching(/\w/),
  });

/** A file with these schema and data, closed. */
function fileWith(sql: string): string {
  const file = newFile();
  const database = openFile(file);
  database.exec(sql);
  database.close();
  return file;
}

/** A file of an inbox that was closed. */
async function closedInbox(records = 0): Promise<string> {
  const file = newFile();
  const store = sqliteStore(file);
  await store.open();
  const swaps = Array.from({ length: records }, (_, n) => waiting(store, n)).toSorted(byKey);
  expect(new Set(await fates(store, swaps)).has("not-written")).toBe(false);
  await store.close();
  return file;
}

async function expectLeftAsItIs(file: string, error: unknown): Promise<void> {
  const before = readFileSync(file);
  await expect(sqliteStore(file).open()).rejects.toEqual(error);
  expect(readFileSync(file).equals(before)).toBe(true);
}

describe("the store of SQLite", () => {
  it("makes no file before it is opened, nor when it is closed without having been opened", async () => {
    const file = newFile();
    const store = sqliteStore(file);
    expect(existsSync(file)).toBe(false);
    await store.close();
    expect(existsSync(file)).toBe(false);
  });

  it("finds a file with a relative path after the process has changed its folder", async () => {
    const file = newFile();
    const [before, clock] = [process.cwd(), fakeClock()];
    onTestFinished(() => process.chdir(before));
    process.chdir(dirname(file));
    const store = sqliteStore(basename(file), { clock });
    await store.open();
    onTestFinished(() => store.close());
    const elsewhere = join(dirname(file), "elsewhere");
    mkdirSync(elsewhere);
    process.chdir(elsewhere);
    for (const end of ["", "-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
    expect(await store.findLoss?.([])).toBe("replaced");
    await clock.advance(6_000);
    await store.open();
    expect([existsSync(file), existsSync(join(elsewhere, basename(file)))]).toEqual([true, false]);
  });

  it.each([undefined, ""])("refuses %j for a file when it is to be opened", async (nothing) => {
    const store = sqliteStore(nothing);
    await expect(store.open()).rejects.toMatchObject({ code: "ERR_OPTION_MISSING" });
    await store.close();
  });

  it("keeps its records over a restart, on a path with spaces and other letters", async () => {
    const file = newFile("Zahlungs eingang ñ 支払い.db");
    const first = sqliteStore(file);
    await first.open();
    const written = await put(first, keyOf(1), null, acceptedRecord(keyOf(1), first.now(keyOf(1))));
    const { datasetId } = first;
    await first.close();
    const second = await openStore(file);
    expectSame(await readOne(second, keyOf(1)), written);
    expect((await takeOfBothLanes(second, 10, 1_000)).records.map(({ key }) => key)).toEqual([keyOf(1)]);
    expect(second.datasetId).toBe(datasetId);
    expect((await openStore(newFile())).datasetId).not.toBe(datasetId);
  });

  it("has every commit on disk before it is answered", async () => {
    const database = openFile(newFile());
    await openStore(database);
    expect([ask(database, "PRAGMA journal_mode"), ask(database, "PRAGMA synchronous")]).toEqual(["wal", 2]);
  });

  it("leaves everything in the one file when it is closed, to be copied", async () => {
    const copy = newFile();
    copyFileSync(await closedInbox(1), copy);
    const store = await openStore(copy);
    expect(await store.counts()).toMatchObject({ waiting: 1 });
    expect(await readOne(store, keyOf(0))).not.toBeNull();
  });

  it("refuses calls before it is opened and after it is closed, and says why", async () => {
    const store = sqliteStore(newFile());
    const notOpen = expect.objectContaining({ code: "ERR_INBOX_UNAVAILABLE" });
    expect(() => store.read([keyOf(1)])).toThrow(notOpen);
    await store.open();
    const swap = waiting(store, 1);
    await store.close();
    expect(await store.swap([swap])).toEqual([{ kind: "not-written", cause: notOpen }]);
    await expect(sendCanary(store)).rejects.toEqual(notOpen);
  });

  it("takes an open handle, and closes it", async () => {
    const database = openFile(newFile());
    const store = sqliteStore(database);
    await store.open();
    expect(await fates(store, [waiting(store, 1)])).toEqual(["written"]);
    await store.close();
    expect(() => database.exec("SELECT 1")).toThrow();
  });

  it("needs of a handle no more than exec, prepare, close, and of a statement get, all and run", async () => {
    const database = openFile(newFile());
    const store = await openStore({
      exec: (sql: string) => database.exec(sql),
      prepare(sql: string) {
        const statement = database.prepare(sql);
        return {
          // bun:sqlite says null where the others say undefined.
          get: (...parameters: readonly unknown[]) => statement.get(...parameters) ?? null,
          all: (...parameters: readonly unknown[]) => statement.all(...parameters),
          run: (...parameters: readonly unknown[]) => void statement.run(...parameters),
        };
      },
      close: () => void database.close(),
    });
    const first = waiting(store, 1);
    expect(await fates(store, [first])).toEqual(["written"]);
    const second = acceptedRecord(keyOf(1), store.now(keyOf(1)), { status: "FAILED" }, first.record);
    expect(await fates(store, [swapOf(store, keyOf(1), first, second)])).toEqual(["written"]);
    const { records } = await takeOfBothLanes(store, 10, 1_000);
    expect(records.map(({ key }) => key)).toEqual([keyOf(1)]);
    expect((await store.list({ id: "tx-1" }, null, 10)).events).toHaveLength(2);
    expect(await store.read([keyOf(2)])).toEqual([null]);
    await sendCanary(store);
  });
});

describe("the schema", () => {
  it("is made in a file that is empty, or marked as ours at version 0", async () => {
    const [empty, marked] = [newFile(), fileWith("PRAGMA application_id = 0x5059484b")];
    writeFileSync(empty, "");
    for (const file of [empty, marked]) {
      const store = await openStore(file);
      expect(await fates(store, [waiting(store, 1)])).toEqual(["written"]);
      expect([ask(file, "PRAGMA user_version"), ask(file, "PRAGMA application_id")]).toEqual([8, 0x5059484b]);
    }
  });

  it.each([
    [1, /schema version 1, of a version before the first release/],
    [2, /schema version 2, of a version before the first release/],
    [3, /schema version 3, of a version before the first release/],
    [4, /schema version 4, of a version before the first release/],
    [5, /schema version 5, of a version before the first release/],
    [6, /schema version 6, of a version before the first release/],
    [7, /schema version 7, of a version before the first release/],
    [9, /schema version 9, newer/],
  ])("of version %i is refused, and left as it is", async (version, text) => {
    const file = await closedInbox(1);
    const database = openFile(file);
    database.exec(`PRAGMA user_version = ${version}`);
    database.close();
    await expectLeftAsItIs(file, unsuitable(text));
  });
});

describe("a file that cannot be an inbox is refused, with what to do:", () => {
  it("a file of another program, which is left as it is", async () => {
    await expectLeftAsItIs(
      fileWith("CREATE TABLE orders (id TEXT)"),
      unsuitable(/belongs to another program/),
    );
  });

  it("a file that is not a database", async () => {
    const file = newFile();
    writeFileSync(file, "id,amount\n".repeat(1_000));
    await expect(sqliteStore(file).open()).rejects.toEqual(unsuitable(/not a database/));
  });

  it("a damaged file", async () => {
    const file = await closedInbox(200);
    const bytes = readFileSync(file);
    bytes.fill(0x5a, 4096, 8 * 4096);
    writeFileSync(file, bytes);
    await expect(sqliteStore(file).open()).rejects.toEqual(unsuitable(/is damaged|malformed/));
  });

  it("a database in memory, which does not outlive the process", async () => {
    await expect(sqliteStore(":memory:").open()).rejects.toEqual(unsuitable(/its journal is "memory"/));
  });

  it("a file that may not be written, be it new or an inbox", async () => {
    const empty = newFile();
    writeFileSync(empty, "");
    for (const file of [empty, await closedInbox()]) {
      // A handle without the right, since a test that runs as root may write every file.
      const database = openFile(file);
      database.exec("PRAGMA query_only = 1");
      await expect(sqliteStore(database).open()).rejects.toEqual(unsuitable(/readonly/));
      database.close();
    }
  });

  it("a file in a missing folder, and a folder", async () => {
    const file = newFile();
    const missing = /cannot be opened: its folder ".*no" does not exist\. Make the folder first/;
    await expect(sqliteStore(join(file, "no", "inbox.db")).open()).rejects.toEqual(unsuitable(missing));
    mkdirSync(join(dirname(file), "folder"));
    await expect(sqliteStore(join(dirname(file), "folder")).open()).rejects.toEqual(unsuitable(/cannot be/));
  });

  it("until it is repaired: then the same store opens it", async () => {
    const file = join(newFile(), "later", "inbox.db");
    const store = sqliteStore(file);
    onTestFinished(() => store.close());
    await expect(store.open()).rejects.toEqual(unsuitable(/cannot be opened/));
    mkdirSync(dirname(file), { recursive: true });
    await store.open();
    expect(await fates(store, [waiting(store, 1)])).toEqual(["written"]);
  });
});
