/** Files that `sqliteInbox` opens, makes, brings up to date, or refuses. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { sqliteInbox } from "../src/sqlite/index.ts";
import {
  ask,
  closing,
  EVERYTHING,
  eventIdOf,
  eventOf,
  newFile,
  openFile,
  writingRunner,
} from "./sqlite-events.ts";

const unsuitable = (text: string | RegExp) =>
  expect.objectContaining({
    code: "ERR_SQLITE_UNSUITABLE",
    message: expect.stringMatching(text),
    fix: expect.stringMatching(/\w/),
  });

const fresh = (file: string) => closing(sqliteInbox(file));

describe("sqliteInbox", () => {
  it("makes no file before it is needed, nor when it is closed unused", async () => {
    const file = newFile();
    const inbox = sqliteInbox(file);
    expect(existsSync(file)).toBe(false);
    expect(await inbox.close({ graceMs: 0 })).toEqual({ unfinished: 0 });
    expect(existsSync(file)).toBe(false);
  });

  it.each([undefined, ""])("refuses %j for a file when it is to be opened", async (nothing) => {
    const inbox = sqliteInbox(nothing);
    await expect(inbox.ready()).rejects.toMatchObject({ code: "ERR_OPTION_MISSING" });
    expect(await inbox.close({ graceMs: 0 })).toEqual({ unfinished: 0 });
  });

  it("keeps what it accepted over a restart, on a path with spaces and other letters", async () => {
    const file = newFile("Zahlungs eingang ñ 支払い.db");
    const event = eventOf(1, Date.now());
    const first = sqliteInbox(file);
    expect((await first.accept(event)).outcome).toBe("new");
    await first.close({ graceMs: 0 });
    expect(existsSync(file)).toBe(true);
    const second = fresh(file);
    expect((await second.accept(event)).outcome).toBe("duplicate");
    const runner = writingRunner();
    expect(await second.work(runner, EVERYTHING)).toMatchObject({ ran: 1, remaining: 0 });
    expect(runner.ran).toEqual(["tx-1"]);
    expect(await second.read(eventIdOf(event))).toMatchObject({ state: "done" });
  });

  it("has every commit on disk before it is answered", async () => {
    const database = openFile(newFile());
    const inbox = closing(sqliteInbox(database));
    await inbox.ready();
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() as object)[0];
    expect(pragma("journal_mode")).toBe("wal");
    expect(pragma("synchronous")).toBe(2);
  });

  it("can be closed twice, and leaves everything in the one file, to be copied", async () => {
    const file = newFile();
    const inbox = sqliteInbox(file);
    await inbox.accept(eventOf(1, Date.now()));
    await Promise.all([inbox.close({ graceMs: 0 }), inbox.close({ graceMs: 0 })]);
    await inbox.close({ graceMs: 0 });
    const copy = newFile();
    copyFileSync(file, copy);
    expect((await fresh(copy).accept(eventOf(1, Date.now()))).outcome).toBe("duplicate");
    await expect(inbox.accept(eventOf(2, Date.now()))).rejects.toMatchObject({
      code: "ERR_INBOX_UNAVAILABLE",
    });
  });

  it("takes an open handle, and closes it", async () => {
    const database = openFile(newFile());
    const inbox = sqliteInbox(database);
    expect((await inbox.accept(eventOf(1, Date.now()))).outcome).toBe("new");
    await inbox.close({ graceMs: 0 });
    expect(() => database.exec("SELECT 1")).toThrow();
  });

  it("needs of a handle no more than exec, prepare, close, and of a statement get, all and run", async () => {
    const database = openFile(newFile());
    const inbox = closing(
      sqliteInbox({
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
      }),
    );
    const event = eventOf(1, Date.now(), { referenceKey: "r".repeat(32) });
    expect((await inbox.accept(event)).outcome).toBe("new");
    const other = eventOf(2, Date.now(), { referenceKey: "r".repeat(32) });
    expect(await inbox.accept(other)).toMatchObject({ outcome: "held", reason: "reference-reused" });
    const runner = writingRunner();
    await inbox.work(runner, EVERYTHING);
    expect(runner.ran).toContain("tx-1");
    expect(await inbox.read("0".repeat(48))).toBeNull();
  });
});

describe("the schema", () => {
  it("is made in a file that is empty, or marked as ours at version 0", async () => {
    const [empty, marked] = [newFile(), newFile()];
    writeFileSync(empty, "");
    const database = openFile(marked);
    database.exec("PRAGMA application_id = 0x5059484b");
    database.close();
    for (const file of [empty, marked]) {
      expect((await fresh(file).accept(eventOf(1, Date.now()))).outcome).toBe("new");
      expect([ask(file, "PRAGMA user_version"), ask(file, "PRAGMA application_id")]).toEqual([2, 0x5059484b]);
    }
  });

  it("of version 1 is brought up to date, with the jobs that wait in it", async () => {
    const file = newFile();
    const inbox = sqliteInbox(file);
    for (const n of [1, 2]) await inbox.accept(eventOf(n, Date.now()));
    await inbox.close({ graceMs: 0 });
    const database = openFile(file);
    database.exec(`
      CREATE TABLE old (id TEXT PRIMARY KEY, due INTEGER NOT NULL) WITHOUT ROWID;
      INSERT INTO old SELECT id, due FROM jobs;
      INSERT INTO old VALUES ('${"0".repeat(48)}-0', 1);
      DROP TABLE jobs;
      ALTER TABLE old RENAME TO jobs;
      CREATE INDEX jobs_by_time ON jobs (due);
      PRAGMA user_version = 1`);
    database.close();
    const runner = writingRunner();
    expect(await fresh(file).work(runner, EVERYTHING)).toMatchObject({ ran: 2, remaining: 0 });
    expect(runner.ran.toSorted()).toEqual(["tx-1", "tx-2"]);
    expect(runner.notices).toEqual([{ type: "record-missing", eventId: "0".repeat(48) }]);
    expect([ask(file, "PRAGMA user_version"), ask(file, "SELECT count(*) FROM jobs")]).toEqual([2, 0]);
  });

  it("of a newer version is refused, and left as it is", async () => {
    const file = newFile();
    const inbox = sqliteInbox(file);
    await inbox.ready();
    await inbox.close({ graceMs: 0 });
    const database = openFile(file);
    database.exec("PRAGMA user_version = 7");
    database.close();
    const before = readFileSync(file);
    await expect(sqliteInbox(file).ready()).rejects.toEqual(unsuitable(/schema version 7, newer/));
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

describe("a file that cannot be an inbox is refused, with what to do:", () => {
  it("another program's, which is left as it is", async () => {
    const file = newFile();
    const database = openFile(file);
    database.exec("CREATE TABLE orders (id TEXT)");
    database.close();
    const before = readFileSync(file);
    await expect(sqliteInbox(file).ready()).rejects.toEqual(unsuitable(/belongs to another program/));
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("one that is no database", async () => {
    const file = newFile();
    writeFileSync(file, "id,amount\n".repeat(1_000));
    await expect(sqliteInbox(file).ready()).rejects.toEqual(unsuitable(/not a database/));
  });

  it("one that is damaged", async () => {
    const file = newFile();
    const inbox = sqliteInbox(file);
    for (let n = 0; n < 200; n++) void inbox.accept(eventOf(n, Date.now()));
    await inbox.accept(eventOf(200, Date.now()));
    await inbox.close({ graceMs: 0 });
    const bytes = readFileSync(file);
    bytes.fill(0x5a, 4096, 8 * 4096);
    writeFileSync(file, bytes);
    await expect(sqliteInbox(file).ready()).rejects.toEqual(unsuitable(/is damaged|malformed/));
  });

  it("one in memory, which survives nothing", async () => {
    await expect(sqliteInbox(":memory:").ready()).rejects.toEqual(unsuitable(/its journal is "memory"/));
  });

  it("one that may not be written, be it new or an inbox", async () => {
    const [empty, inboxFile] = [newFile(), newFile()];
    writeFileSync(empty, "");
    const inbox = sqliteInbox(inboxFile);
    await inbox.ready();
    await inbox.close({ graceMs: 0 });
    for (const file of [empty, inboxFile]) {
      // A handle without the right, since a test that runs as root may write every file.
      const database = openFile(file);
      database.exec("PRAGMA query_only = 1");
      await expect(sqliteInbox(database).ready()).rejects.toEqual(unsuitable(/readonly/));
      database.close();
    }
  });

  it("one in a folder that is missing, and a folder", async () => {
    const file = newFile();
    await expect(sqliteInbox(join(file, "no", "inbox.db")).ready()).rejects.toEqual(unsuitable(/cannot be/));
    mkdirSync(join(dirname(file), "folder"));
    await expect(sqliteInbox(join(dirname(file), "folder")).ready()).rejects.toEqual(unsuitable(/cannot be/));
  });

  it("and once it is mended, the same inbox opens it", async () => {
    const file = join(newFile(), "later", "inbox.db");
    const inbox = closing(sqliteInbox(file));
    await expect(inbox.ready()).rejects.toEqual(unsuitable(/cannot be opened/));
    mkdirSync(dirname(file), { recursive: true });
    expect((await inbox.accept(eventOf(1, Date.now()))).outcome).toBe("new");
  });
});
