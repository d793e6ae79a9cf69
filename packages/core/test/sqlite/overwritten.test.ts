/** A file that another program writes into while it is open, and what SQLite writes there itself. */
import { readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { sqliteStore } from "../../src/sqlite/store.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import { fates, newFile, openFile, waiting } from "./database-files.ts";

/** A store that has been open for a while, whose log another handle has written back once. */
async function openFor(seconds: number, isHandle = false) {
  const file = newFile();
  const clock = fakeClock();
  const handle = isHandle ? openFile(file) : null;
  if (handle !== null) onTestFinished(() => void handle.close());
  const store = sqliteStore(handle ?? file, { clock });
  await store.open();
  onTestFinished(() => store.close());
  const older = openFile(file);
  older.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  older.close();
  const copy = readFileSync(file);
  expect(await fates(store, [waiting(store, 1)])).toEqual(["written"]);
  expect(await store.findLoss?.([])).toBeNull();
  await clock.advance(seconds * 1_000);
  return { file, copy, clock, store };
}

/** The bytes are another's, the file is the same. */
function overwrite(file: string, content: Uint8Array): void {
  const { mtimeMs } = statSync(file);
  writeFileSync(file, content, { flag: "r+" });
  // Not in the same moment as a write before.
  utimesSync(file, new Date(), new Date(mtimeMs + 50));
}

const loss = (store: RecordStore) => store.findLoss?.([]);

describe("a file of SQLite that was overwritten while it was open", () => {
  it("is reported as lost, takes no more writes, and is opened again if it is intact", async () => {
    const { file, copy, clock, store } = await openFor(4);
    overwrite(file, copy);
    const [refused] = await store.swap([waiting(store, 2)]);
    expect(refused).toMatchObject({
      kind: "not-written",
      cause: { message: expect.stringContaining("was overwritten while it was open") },
    });
    expect(await loss(store)).toBe("replaced");
    expect(await loss(store)).toBeNull();
    await clock.advance(6_000);
    await store.open();
    expect(await fates(store, [waiting(store, 2)])).toEqual(["written"]);
  });

  it("is reported as lost by each process, unless others have just committed", async () => {
    const { file, copy, clock, store } = await openFor(4);
    const [second, third] = [1, 2].map(() => sqliteStore(file, { clock }));
    for (const one of [second, third]) {
      await one?.open();
      onTestFinished(() => one?.close());
    }
    if (second === undefined || third === undefined) expect.fail("there are three");
    expect(await loss(store)).toBeNull();
    await clock.advance(4_000);
    expect(await fates(third, [waiting(third, 3)])).toEqual(["written"]);
    expect(await loss(second)).toBeNull();
    overwrite(file, copy);
    expect(await loss(second)).toBeNull();
    expect(await loss(third)).toBe("replaced");
  });

  it("is reported as lost even if nothing is written", async () => {
    const { file, copy, store } = await openFor(4);
    overwrite(file, copy);
    expect(await loss(store)).toBe("replaced");
  });

  it("is reported as lost at once if the copy keeps its older modification time", async () => {
    const file = newFile();
    const store = sqliteStore(file, { clock: fakeClock() });
    await store.open();
    onTestFinished(() => store.close());
    const copy = readFileSync(file);
    expect(await fates(store, [waiting(store, 1)])).toEqual(["written"]);
    expect(await loss(store)).toBeNull();
    overwrite(file, copy);
    utimesSync(file, new Date(1_000), new Date(1_000));
    expect(await loss(store)).toBe("replaced");
  });

  it("is also reported as lost if another program has written the log back without a commit, which looks the same", async () => {
    const { file, store } = await openFor(4);
    const other = openFile(file);
    other.exec("PRAGMA wal_checkpoint(PASSIVE)");
    other.close();
    expect(await loss(store)).toBe("replaced");
  });

  it("takes nothing more if it is damaged", async () => {
    const { file, clock, store } = await openFor(4);
    overwrite(file, Buffer.alloc(statSync(file).size, "x"));
    expect(await loss(store)).toBe("replaced");
    await clock.advance(6_000);
    await expect(store.open()).rejects.toMatchObject({ code: "ERR_SQLITE_UNSUITABLE" });
    await expect(async () => store.read(["x"])).rejects.toThrow(/was overwritten/);
  });
});

describe("a write that SQLite makes into the file by itself is not a loss", () => {
  it.each([
    ["TRUNCATE", "PRAGMA wal_checkpoint(TRUNCATE)"],
    ["PASSIVE, after a commit", "PRAGMA user_version = 8; PRAGMA wal_checkpoint(PASSIVE)"],
    ["VACUUM", "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"],
  ])("another program writes the log back: %s", async (_, sql) => {
    const { file, store } = await openFor(4);
    const { mtimeMs } = statSync(file);
    const other = openFile(file);
    other.exec(sql);
    other.close();
    expect(statSync(file).mtimeMs).not.toBe(mtimeMs);
    expect(await loss(store)).toBeNull();
    expect(await fates(store, [waiting(store, 2)])).toEqual(["written"]);
  });

  it("when another store on the file closes", async () => {
    const { file, store } = await openFor(4);
    const other = sqliteStore(file);
    await other.open();
    await other.close();
    expect(await loss(store)).toBeNull();
    expect(await fates(store, [waiting(store, 2)])).toEqual(["written"]);
  });

  it("when another store writes its log back after the clock of the machine was set back", async () => {
    const { file, clock, store } = await openFor(4);
    const other = sqliteStore(file, { clock });
    await other.open();
    onTestFinished(() => other.close());
    expect(await loss(store)).toBeNull();
    await clock.advance(4_000);
    expect(await loss(store)).toBeNull();
    const { mtimeMs } = statSync(file);
    expect(await fates(other, [waiting(other, 2)])).toEqual(["written"]);
    const checkpoint = openFile(file);
    checkpoint.exec("PRAGMA wal_checkpoint(PASSIVE)");
    checkpoint.close();
    utimesSync(file, new Date(), new Date(mtimeMs - 2_000));
    expect(await loss(store)).toBeNull();
    expect(await fates(store, [waiting(store, 3)])).toEqual(["written"]);
  });

  it("when the store itself writes back its log, which has grown", async () => {
    const { file, clock, store } = await openFor(4);
    const { size } = statSync(file);
    for (let n = 2; n < 1_500; n++) {
      expect(await fates(store, [waiting(store, n, Buffer.alloc(4_000, n))])).toEqual(["written"]);
    }
    expect(statSync(file).size).toBeGreaterThan(size);
    await clock.advance(11_000);
    expect(await loss(store)).toBeNull();
  });

  it("when the program that gave the handle writes through it", async () => {
    const { file, copy, store } = await openFor(4, true);
    overwrite(file, copy);
    expect(await loss(store)).toBeNull();
  });
});
