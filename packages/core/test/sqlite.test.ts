/** The SQLite inbox beyond the contract: commits, several processes, a full disk, pruning. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createReceiver } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { sqliteInbox } from "../src/sqlite/index.ts";
import {
  closing,
  EVERYTHING,
  eventIdOf,
  eventOf,
  heldOf,
  inLanes,
  newFile,
  openFile,
  type TestDatabase,
  writingRunner,
} from "./sqlite-events.ts";

// Much of it is RSA and child processes, on a machine that does other things too.
vi.setConfig({ testTimeout: 30_000 });

/** A handle that counts the commits that wrote something: each is one fsync of the log. */
function counting(database: TestDatabase): { readonly handle: TestDatabase; commits(): number } {
  const total = database.prepare("SELECT total_changes() AS n");
  const changes = (): number => Number((total.get() as { n: number }).n);
  let commits = 0;
  let before = 0;
  const handle: TestDatabase = {
    exec(sql) {
      if (sql === "BEGIN IMMEDIATE") before = changes();
      if (sql === "COMMIT" && changes() > before) commits++;
      return database.exec(sql);
    },
    prepare: (sql) => database.prepare(sql),
    close: () => database.close(),
  };
  return { handle, commits: () => commits };
}

describe("group commit", () => {
  it("shares a commit among the deliveries of a turn: less than 0.1 per event at concurrency 50", async () => {
    const { handle, commits } = counting(openFile(newFile()));
    const inbox = closing(sqliteInbox(handle));
    await inLanes(50, 1_000, (n) => inbox.accept(eventOf(n, Date.now())));
    expect(commits()).toBeGreaterThan(0);
    expect(commits() / 1_000).toBeLessThan(0.1);
    const accepted = commits();
    const runner = writingRunner();
    await inbox.work(runner, { ...EVERYTHING, concurrency: 50 });
    expect(runner.ran).toHaveLength(1_000);
    // Taking, begin, both ends of the step, finish and settling: six in all, shared by fifty events.
    expect((commits() - accepted) / 1_000).toBeLessThan(0.2);
  });

  it("fails one event alone whose record cannot be read", async () => {
    const file = newFile();
    const inbox = closing(sqliteInbox(file));
    await inbox.accept(eventOf(1, Date.now()));
    const other = openFile(file);
    other.exec("UPDATE records SET value = 'o{'");
    other.close();
    const answers = await Promise.allSettled([0, 1, 2].map((n) => inbox.accept(eventOf(n, Date.now()))));
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(answers[1]).toMatchObject({ reason: { code: "ERR_INBOX_UNAVAILABLE" } });
    expect((await inbox.accept(eventOf(2, Date.now()))).outcome).toBe("duplicate");
  });
});

describe("another program that holds the file", () => {
  it("is waited for, and the event loop goes on meanwhile; in the end it is an error", async () => {
    const file = newFile();
    const inbox = closing(sqliteInbox(file));
    await inbox.ready();
    const other = openFile(file);
    other.exec("BEGIN IMMEDIATE");
    onTestFinished(() => void other.close());
    let turns = 0;
    const counter = setInterval(() => turns++, 10);
    const startedAt = performance.now();
    await expect(inbox.accept(eventOf(1, Date.now()))).rejects.toMatchObject({
      code: "ERR_INBOX_UNAVAILABLE",
      message: expect.stringMatching(/locked/),
    });
    const tookMs = performance.now() - startedAt;
    clearInterval(counter);
    expect(tookMs).toBeGreaterThan(1_000);
    // A loop that hung in SQLite's own waiting would have had next to no turns.
    expect(turns).toBeGreaterThan(20);
    const waiting = inbox.accept(eventOf(1, Date.now()));
    await new Promise((resolve) => setImmediate(resolve));
    other.exec("COMMIT");
    expect((await waiting).outcome).toBe("new");
  });

  it("is waited for at the start too", async () => {
    const file = newFile();
    const other = openFile(file);
    other.exec("BEGIN IMMEDIATE");
    onTestFinished(() => void other.close());
    const accepting = closing(sqliteInbox(file)).accept(eventOf(1, Date.now()));
    await new Promise((resolve) => setImmediate(resolve));
    other.exec("ROLLBACK");
    expect((await accepting).outcome).toBe("new");
  });
});

describe("several processes on one file", { timeout: 60_000 }, () => {
  it("started at once on a new file, accept each event once and run it once", async () => {
    const file = newFile();
    const log = join(file, "..", "ran.log");
    writeFileSync(log, "");
    const EVENTS = 300;
    const children = [1, 2, 3].map(() =>
      fork(fileURLToPath(new URL("sqlite-process.ts", import.meta.url)), [file, log, String(EVENTS)], {
        execArgv: ["--conditions=payhooks-source", "--import=tsx"],
        cwd: fileURLToPath(new URL("../../..", import.meta.url)),
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
        ])) as [{ new?: number; duplicate?: number }];
        return outcomes;
      }),
    );
    const sum = (outcome: "new" | "duplicate"): number =>
      reports.reduce((total, outcomes) => total + (outcomes[outcome] ?? 0), 0);
    expect([sum("new"), sum("duplicate")]).toEqual([EVENTS, 2 * EVENTS]);
    const ran = (): string[] => readFileSync(log, "utf8").split("\n").filter(Boolean);
    await vi.waitFor(() => expect(ran().length).toBeGreaterThanOrEqual(EVENTS), { timeout: 40_000 });
    const exits = children.map((child) => once(child, "exit"));
    for (const child of children) child.send("stop");
    expect((await Promise.all(exits)).map(([code]) => code)).toEqual([0, 0, 0]);
    expect(ran()).toHaveLength(EVENTS);
    expect(new Set(ran()).size).toBe(EVENTS);
  });

  it("one runs what the other accepted, at its next look", async () => {
    const file = newFile();
    const clock = fakeClock();
    const accepting = closing(sqliteInbox(file, { clock }), clock);
    const runs = closing(sqliteInbox(file, { clock, pollMs: 700 }), clock);
    const runner = writingRunner();
    const running = await runs.run(runner, { concurrency: 4 });
    await clock.advance(0);
    await accepting.accept(eventOf(1, clock.now()));
    await clock.advance(690);
    expect(runner.ran).toEqual([]);
    await clock.advance(20);
    await vi.waitFor(() => expect(runner.ran).toEqual(["tx-1"]));
    await running.stop();
  });

  it("takes over what a dead one had, after its lease", async () => {
    const file = newFile();
    const clock = fakeClock();
    const dead = closing(sqliteInbox(file, { clock, leaseMs: 1_000 }), clock);
    await dead.accept(eventOf(1, clock.now()));
    const runner = writingRunner();
    const started = new Promise<void>((resolve) => {
      const hangs = { run: () => new Promise<never>(() => resolve()), notify: () => {} };
      void dead.work(hangs, EVERYTHING);
    });
    await started;
    const other = closing(sqliteInbox(file, { clock, leaseMs: 1_000 }), clock);
    expect(await other.work(runner, EVERYTHING)).toMatchObject({ ran: 0 });
    // Frozen: its timers do not fire, so nothing renews the lease.
    const later = closing(sqliteInbox(file, { clock: { ...clock, now: () => clock.now() + 1_001 } }), clock);
    expect(await later.work(runner, EVERYTHING)).toMatchObject({ ran: 1 });
    expect(runner.ran).toEqual(["tx-1"]);
  });
});

describe("a full disk", () => {
  it("is answered 503; what was acknowledged is kept, and it goes on when there is room again", async () => {
    const database = openFile(newFile());
    const inbox = closing(sqliteInbox(database));
    await inbox.ready();
    const keys = createTestKeys();
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox,
      run: "elsewhere",
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    });
    const ran: string[] = [];
    receiver.onDeposit(({ payTxnId }) => void ran.push(payTxnId));
    const post = async (n: number): Promise<number> => {
      const { rawBody, headers } = signPaymentCallback(
        callbackFields({ payTxnId: `tx-${n}`, message: "m".repeat(8_000) }),
        keys.privateKey,
      );
      const { status } = await receiver.payments.receive({
        method: "POST",
        url: "/callbacks/pay",
        headers: { get: (name) => headers[name] ?? null },
        rawBody,
      });
      return status;
    };
    const pages = Number(Object.values(database.prepare("PRAGMA page_count").get() as object)[0]);
    database.exec(`PRAGMA max_page_count = ${pages + 60}`);
    const answers = new Map<number, number>();
    await inLanes(4, 40, async (n) => void answers.set(n, await post(n)));
    const answered = (status: number): number[] =>
      [...answers].filter(([, s]) => s === status).map(([n]) => n);
    expect(answered(200).length).toBeGreaterThan(3);
    expect(answered(503).length).toBeGreaterThan(3);
    expect(answered(200).length + answered(503).length).toBe(40);
    database.exec("PRAGMA max_page_count = 1000000");
    for (const n of answered(503)) expect(await post(n)).toBe(200);
    const { ran: done } = await receiver.work({ deadlineMs: 60_000 });
    expect(done).toBe(40);
    expect(ran.sort()).toEqual(Array.from({ length: 40 }, (_, n) => `tx-${n}`).sort());
  });
});

describe("pruning", () => {
  const DAY_MS = 86_400_000;

  it("takes expired records away in small steps, as fast as they came; never what waits or is held", async () => {
    const file = newFile();
    const database = openFile(file);
    const clock = fakeClock();
    const inbox = closing(sqliteInbox(database, { clock }), clock);
    const count = (): number =>
      Number((database.prepare("SELECT count(*) AS n FROM records").get() as { n: number }).n);
    await inLanes(50, 400, (n) => inbox.accept(eventOf(n, clock.now())));
    await inbox.work(writingRunner(), EVERYTHING);
    await inbox.accept(eventOf(1_000, clock.now(), { verdict: "ambiguous", rank: null }));
    await inbox.work({ run: async () => ({ kind: "told" }), notify: () => {} }, EVERYTHING);
    await inbox.accept(eventOf(1_001, clock.now()));
    expect(count()).toBe(402);
    await clock.advance(9 * DAY_MS);
    const counts: number[] = [];
    for (let n = 2_000; n < 2_012; n++) {
      await inbox.accept(eventOf(n, clock.now()));
      counts.push(count() - (n - 1_999));
    }
    // Fifty at most go with one write, and all of them within a dozen.
    expect(counts).toEqual([352, 302, 252, 202, 152, 102, 52, 2, 2, 2, 2, 2]);
    expect(await heldOf(inbox)).toMatchObject([{ id: "tx-1000", reason: "ambiguous" }]);
    expect(await inbox.read(eventIdOf(eventOf(1_001, 0)))).toMatchObject({ state: "waiting" });
    // What is gone is new, if it is signed anew.
    expect((await inbox.accept(eventOf(5, clock.now()))).outcome).toBe("new");
  });

  it("forgets a claimed reference with the record that claimed it", async () => {
    const clock = fakeClock();
    const inbox = closing(sqliteInbox(newFile(), { clock }), clock);
    const claiming = (n: number) => eventOf(n, clock.now(), { referenceKey: "r".repeat(32) });
    expect((await inbox.accept(claiming(1))).outcome).toBe("new");
    expect(await inbox.accept(claiming(2))).toMatchObject({ outcome: "held", reason: "reference-reused" });
    await clock.advance(9 * DAY_MS);
    expect((await inbox.accept(claiming(3))).outcome).toBe("new");
  });
});
