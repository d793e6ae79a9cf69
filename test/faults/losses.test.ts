/** A store loses what it was given, while a process goes on with it: that is noticed, and nothing more is promised for nothing. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { Health, Receiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { describe, expect, it } from "vitest";
import { silent } from "../support/silent.ts";
import type { InboxConfig } from "./harness/child-config.ts";
import { freeze } from "./harness/disk.ts";
import { testEvent } from "./harness/events.ts";
import {
  DURABLE,
  deliver,
  type LocalReceiver,
  newFolder,
  sqliteIn,
  startReceiver,
} from "./harness/receivers.ts";
import { RedisServer, startCluster } from "./harness/redis-server.ts";
import { pause, type Scope, until, withScope } from "./harness/scope.ts";
import { keys } from "./harness/system.ts";

/** The time that an operator is promised. */
const NOTICED_WITHIN_MS = 5_000;
/** After so long without a commit of another handle, SQLite has certainly written its log back. */
const QUIET_MS = 6_000;

/** Its handlers never end, so that everything that it acknowledged is still there to be lost. */
function busyReceiver(scope: Scope, inbox: Parameters<typeof startReceiver>[1]): Promise<LocalReceiver> {
  return startReceiver(scope, inbox, (receiver) => receiver.onDeposit(() => new Promise(() => {})));
}

const event = () => testEvent(keys.privateKey);
const losses = ({ notices }: LocalReceiver) =>
  notices.flatMap((notice) => (notice.type === "data-lost" ? [notice.why] : []));

/** The loss is told once, in time, and shows in the health. */
async function expectNoticed(one: LocalReceiver, why: string, since: number): Promise<void> {
  await until("the loss is noticed", () => losses(one).length > 0, { withinMs: NOTICED_WITHIN_MS });
  const noticedAt = Date.now();
  const { lostAt } = await one.receiver.health();
  expect(lostAt).toBeGreaterThanOrEqual(since);
  expect(lostAt).toBeLessThanOrEqual(noticedAt);
  await pause(2_500);
  expect(losses(one)).toEqual([why]);
}

async function accepts(receiver: Receiver): Promise<void> {
  await until("it accepts", async () => (await deliver(receiver, event())) === 200, { everyMs: 200 });
  // Until a canary was taken, it is not known whether events that are due can be.
  await until("it is well", async () => (await receiver.health()).ok, { withinMs: NOTICED_WITHIN_MS });
}

describe.concurrent("Redis", { timeout: 60_000 }, () => {
  async function onRedis(scope: Scope, settings: Parameters<typeof RedisServer.start>[1] = {}) {
    const redis = await RedisServer.start(scope, settings);
    const config: InboxConfig = { kind: "redis", target: redis.url };
    const processes = await Promise.all([busyReceiver(scope, config), busyReceiver(scope, config)]);
    for (const { receiver } of processes) expect(await deliver(receiver, event())).toBe(200);
    expect(await processes[0].receiver.health()).toMatchObject({ ok: true, lostAt: null });
    return { redis, processes };
  }

  it("each process notices once that Redis was emptied, and goes on", () =>
    withScope(async (scope) => {
      const { redis, processes } = await onRedis(scope);
      const since = Date.now();
      await redis.tell("FLUSHALL");
      await Promise.all(processes.map((one) => expectNoticed(one, "replaced", since)));
      await accepts(processes[0].receiver);
    }));

  it("each process notices that Redis was restarted and kept nothing", () =>
    withScope(async (scope) => {
      const { redis, processes } = await onRedis(scope, { aof: "none" });
      const since = Date.now();
      await redis.kill();
      await redis.up();
      await Promise.all(processes.map((one) => expectNoticed(one, "replaced", since)));
    }));

  it("no process reports a loss if Redis was restarted and kept everything", () =>
    withScope(async (scope) => {
      const { redis, processes } = await onRedis(scope, { aof: "always" });
      await redis.kill();
      await redis.up();
      await accepts(processes[0].receiver);
      await pause(NOTICED_WITHIN_MS);
      for (const one of processes) {
        expect(losses(one)).toEqual([]);
        expect(await one.receiver.health()).toMatchObject({ ok: true, lostAt: null });
      }
    }));

  it("each process notices that the eviction policy was changed", () =>
    withScope(async (scope) => {
      const { redis, processes } = await onRedis(scope);
      const since = Date.now();
      await redis.tell("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
      await Promise.all(processes.map((one) => expectNoticed(one, "evicting", since)));
    }));

  it("a process notices that a node of a cluster without the first shard was emptied", () =>
    withScope(async (scope) => {
      const nodes = await startCluster(scope);
      const { Cluster } = await import("ioredis");
      const { redisInbox } = await import("@payhooks/core/redis");
      const cluster = new Cluster(nodes.map(({ port }) => ({ host: "127.0.0.1", port })));
      scope.add(cluster, (one) => one.disconnect());
      const one = await busyReceiver(scope, redisInbox(cluster, { logger: silent }));
      expect(await deliver(one.receiver, event())).toBe(200);
      await pause(2_500);
      expect(losses(one)).toEqual([]);
      const since = Date.now();
      await nodes[2]?.tell("FLUSHALL");
      await expectNoticed(one, "replaced", since);
    }));
});

describe.concurrent("a SQLite file", { timeout: 60_000 }, () => {
  /** Two processes on one file that was given by its path; each has an event that waits for ever. */
  async function onFile(scope: Scope) {
    const { file } = sqliteIn(newFolder(scope));
    const inbox = () => sqliteInbox(file, { pollMs: 100 });
    const processes = await Promise.all([busyReceiver(scope, inbox()), busyReceiver(scope, inbox())]);
    for (const { receiver } of processes) expect(await deliver(receiver, event())).toBe(200);
    expect(await processes[0].receiver.health()).toMatchObject({ ok: true, lostAt: null });
    return { file, processes };
  }

  it.each([
    [
      "was deleted, with what lies beside it",
      (file: string) => {
        for (const end of ["", "-wal", "-shm"]) rmSync(`${file}${end}`);
      },
    ],
    ["was deleted alone", (file: string) => rmSync(file)],
    ["was moved away", (file: string) => renameSync(file, `${file}.old`)],
    [
      "was deleted with its folder, which is there again later",
      (file: string) => {
        rmSync(dirname(file), { recursive: true });
        setTimeout(() => mkdirSync(dirname(file)), 3_000);
      },
    ],
    [
      "was exchanged for another",
      (file: string) => {
        copyFileSync(file, `${file}.copy`);
        renameSync(`${file}.copy`, file);
      },
    ],
  ] as const)("that %s: nothing is acknowledged into it, and after a while it is made anew", (_, lose) =>
    withScope(async (scope) => {
      const { file, processes } = await onFile(scope);
      const since = Date.now();
      lose(file);
      const lost = event();
      expect(await deliver(processes[0].receiver, lost)).toBe(503);
      expect(await processes[0].receiver.health()).toMatchObject({
        ok: false,
        detail: expect.stringContaining("was deleted or exchanged"),
      });
      await Promise.all(processes.map((one) => expectNoticed(one, "replaced", since)));
      // The service sends it again.
      await until("it is accepted", async () => (await deliver(processes[0].receiver, lost)) === 200);
      await accepts(processes[1].receiver);
      // Both have the same file again: one sees what the other has accepted.
      expect(await deliver(processes[1].receiver, lost)).toBe(200);
      const isDuplicate = (): boolean => processes[1].notices.some(({ type }) => type === "duplicate");
      await until("it is a duplicate", isDuplicate);
      const seen = await startReceiver(scope, sqliteInbox(file), (receiver) =>
        receiver.ignore("WITHDRAWAL").onDeposit(() => {}),
      );
      const health = await seen.receiver.health();
      expect(health).toMatchObject({ ok: true, lostAt: null });
      expect(unfinished(health)).toBeGreaterThanOrEqual(2);
    }),
  );

  /** The events that are there, begun or not: a slow process begins an event some time after its acceptance. */
  const unfinished = ({ waiting, running }: Health): number => Number(waiting) + Number(running);
  const copyOf = async (scope: Scope, file: string, ends: readonly string[]) => {
    const copy = sqliteIn(newFolder(scope)).file;
    for (const end of ends) if (existsSync(`${file}${end}`)) copyFileSync(`${file}${end}`, `${copy}${end}`);
    const inbox = sqliteInbox(copy);
    scope.add(inbox, (one) => one.close({ graceMs: 0 }));
    await inbox.ready();
    return inbox.health();
  };
  const remove =
    (...ends: readonly string[]) =>
    (file: string): void => {
      for (const end of ends) rmSync(`${file}${end}`);
    };

  it.each([
    ["-wal", remove("-wal")],
    ["-shm", remove("-shm")],
    ["-wal and -shm", remove("-wal", "-shm")],
    ["-wal, which another one replaces,", (file: string) => copyFileSync(`${file}-shm`, `${file}-new`)],
  ] as const)(
    "whose %s was removed under its only process: a notice reports it, and nothing is lost",
    (name, lose) =>
      withScope(async (scope) => {
        const { file } = sqliteIn(newFolder(scope));
        const one = await busyReceiver(scope, sqliteInbox(file));
        for (let n = 0; n < 3; n++) expect(await deliver(one.receiver, event())).toBe(200);
        const since = Date.now();
        lose(file);
        if (name.includes("replaces")) renameSync(`${file}-new`, `${file}-wal`);
        expect(await deliver(one.receiver, event())).toBe(200);
        // The files that a crash of the machine would leave have all four.
        expect(unfinished(await copyOf(scope, file, ["", "-wal"]))).toBe(4);
        await expectNoticed(one, "log-removed", since);
        await accepts(one.receiver);
      }),
  );

  it("whose log was removed under two processes: nothing more is acknowledged, and the file has every acknowledged event", () =>
    withScope(async (scope) => {
      const { file, processes } = await onFile(scope);
      const since = Date.now();
      remove("-wal", "-shm")(file);
      expect(await deliver(processes[0].receiver, event())).toBe(503);
      expect(await processes[1].receiver.health()).toMatchObject({
        ok: false,
        detail: expect.stringContaining("-wal or -shm"),
      });
      expect(await deliver(processes[1].receiver, event())).toBe(503);
      expect(unfinished(await copyOf(scope, file, [""]))).toBeGreaterThanOrEqual(2);
      await Promise.all(processes.map((one) => expectNoticed(one, "log-removed", since)));
      await Promise.all(processes.map(({ receiver }) => receiver.close({ graceMs: 0 })));
    }));

  it("whose log was cut: a notice reports it, and nothing more is acknowledged", () =>
    withScope(async (scope) => {
      const { file } = sqliteIn(newFolder(scope));
      const one = await busyReceiver(scope, sqliteInbox(file));
      expect(await deliver(one.receiver, event())).toBe(200);
      const since = Date.now();
      truncateSync(`${file}-wal`);
      await deliver(one.receiver, event());
      await expectNoticed(one, "log-removed", since);
      expect(await deliver(one.receiver, event())).toBe(503);
    }));

  it.each([
    ["all records", "DELETE FROM records"],
    ["what its records are found by", "DELETE FROM events"],
    ["one record", "DELETE FROM records WHERE row_id = (SELECT min(row_id) FROM records)"],
  ])("from which somebody deleted %s: a process reports it even if it has only found them there", (_, sql) =>
    withScope(async (scope) => {
      const { file } = sqliteIn(newFolder(scope));
      const first = await startReceiver(scope, sqliteInbox(file), (receiver) =>
        receiver.onDeposit(() => Promise.reject(new Error("the shop is down")), {
          backoffMs: () => 3_600_000,
        }),
      );
      for (let n = 0; n < 3; n++) expect(await deliver(first.receiver, event())).toBe(200);
      await until("they wait", async () => (await first.receiver.health()).retrying === 3);
      const next = await busyReceiver(scope, sqliteInbox(file));
      await pause(2_500);
      const since = Date.now();
      const { default: Database } = await import("libsql");
      const other = new Database(file);
      other.exec(sql);
      other.close();
      await Promise.all([first, next].map((one) => expectNoticed(one, "missing", since)));
      await accepts(next.receiver);
    }),
  );

  it("from which somebody deleted finished records: a process reports it even if it has only found them there", () =>
    withScope(async (scope) => {
      const { file } = sqliteIn(newFolder(scope));
      const start = () =>
        startReceiver(scope, sqliteInbox(file, { pollMs: 100 }), (receiver) => receiver.onDeposit(() => {}));
      const first = await start();
      for (let n = 0; n < 3; n++) expect(await deliver(first.receiver, event())).toBe(200);
      await until("all is done", () => first.notices.filter(({ type }) => type === "finished").length === 3);
      await first.receiver.close();
      const next = await start();
      await pause(2_500);
      const since = Date.now();
      const { default: Database } = await import("libsql");
      const other = new Database(file);
      other.exec("DELETE FROM records");
      other.close();
      await expectNoticed(next, "missing", since);
    }));

  it("that was overwritten by an older copy, under its only process: a notice reports it, and nothing is acknowledged into it", () =>
    withScope(async (scope) => {
      const { file } = sqliteIn(newFolder(scope));
      const one = await busyReceiver(scope, sqliteInbox(file, { pollMs: 100 }));
      expect(await deliver(one.receiver, event())).toBe(200);
      const { default: Database } = await import("libsql");
      const other = new Database(file);
      other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      other.close();
      const older = readFileSync(file);
      for (let n = 0; n < 3; n++) expect(await deliver(one.receiver, event())).toBe(200);
      await pause(QUIET_MS);
      const since = Date.now();
      writeFileSync(file, older, { flag: "r+" });
      expect(await deliver(one.receiver, event())).toBe(503);
      expect(await one.receiver.health()).toMatchObject({
        ok: false,
        detail: expect.stringContaining("was overwritten"),
      });
      await expectNoticed(one, "replaced", since);
      await accepts(one.receiver);
    }));

  it("whose disk takes no more writes: nothing is acknowledged, a notice reports it, and everything goes on when the disk takes writes again", ({
    skip,
  }) =>
    withScope(async (scope) => {
      const { file } = sqliteIn(newFolder(scope));
      const one = await startReceiver(scope, sqliteInbox(file, { pollMs: 100 }), (receiver) =>
        receiver.onDeposit(() => {}),
      );
      expect(await deliver(one.receiver, event())).toBe(200);
      const frozen = [file, `${file}-wal`];
      scope.add(frozen, (files) => freeze(files, false));
      skip(!freeze(frozen, true), "only root may freeze a file, and only on some file systems");
      const lost = event();
      expect(await deliver(one.receiver, lost)).toBe(503);
      await until("it is told", () => one.notices.some(({ type }) => type === "stalled"));
      expect(await one.receiver.health()).toMatchObject({ ok: false, failing: "accept", lostAt: null });
      freeze(frozen, false);
      expect(await deliver(one.receiver, lost)).toBe(200);
      await accepts(one.receiver);
      expect(losses(one)).toEqual([]);
    }));

  it("that may only be read: nothing is acknowledged, a notice reports it, and everything goes on when it may be written", () =>
    withScope(async (scope) => {
      const { file } = sqliteIn(newFolder(scope));
      const { default: Database } = await import("libsql");
      const handle = scope.add(new Database(file), (one) => one.close());
      const one = await startReceiver(scope, sqliteInbox(handle, { pollMs: 100 }), (receiver) =>
        receiver.onDeposit(() => {}),
      );
      expect(await deliver(one.receiver, event())).toBe(200);
      handle.exec("PRAGMA query_only = 1");
      const lost = event();
      expect(await deliver(one.receiver, lost)).toBe(503);
      await until("it is told", () => one.notices.some(({ type }) => type === "stalled"));
      expect(await one.receiver.health()).toMatchObject({ ok: false, lostAt: null });
      handle.exec("PRAGMA query_only = 0");
      expect(await deliver(one.receiver, lost)).toBe(200);
      await accepts(one.receiver);
    }));

  it("that was put back from a backup while no process ran: no notice reports it, and the later events are unknown", () =>
    withScope(async (scope) => {
      const { file } = sqliteIn(newFolder(scope));
      const ran: string[] = [];
      const start = () =>
        startReceiver(scope, sqliteInbox(file, { pollMs: 100 }), (receiver) =>
          receiver.onDeposit(({ payTxnId }) => void ran.push(payTxnId)),
        );
      const [before, since] = [event(), event()];
      const first = await start();
      expect(await deliver(first.receiver, before)).toBe(200);
      await until("it has run", () => ran.length === 1);
      await first.receiver.close();
      copyFileSync(file, `${file}.backup`);
      const second = await start();
      expect(await deliver(second.receiver, since)).toBe(200);
      await until("it has run", () => ran.length === 2);
      await second.receiver.close();
      copyFileSync(`${file}.backup`, file);
      const third = await start();
      for (const one of [before, since]) expect(await deliver(third.receiver, one)).toBe(200);
      await until("what is unknown has run again", () => ran.length === 3);
      expect(ran).toEqual([before, since, since].map(({ payTxnId }) => payTxnId));
      await pause(NOTICED_WITHIN_MS);
      expect(losses(third)).toEqual([]);
      expect(await third.receiver.health()).toMatchObject({ ok: true, lostAt: null });
    }));

  it("that was given as a handle and deleted takes nothing more", () =>
    withScope(async (scope) => {
      const config = sqliteIn(newFolder(scope));
      const one = await busyReceiver(scope, config);
      expect(await deliver(one.receiver, event())).toBe(200);
      const since = Date.now();
      rmSync(config.file);
      await expectNoticed(one, "replaced", since);
      await pause(5_000);
      expect(await deliver(one.receiver, event())).toBe(503);
      expect(existsSync(config.file)).toBe(false);
    }));
});

describe.each(DURABLE)("an inbox on %s that nobody has used", (_, makeInbox) => {
  it("is not made by a program that only looks", () =>
    withScope(async (scope) => {
      const config = await makeInbox(scope);
      const { redisInbox } = await import("@payhooks/core/redis");
      const open = () =>
        config.kind === "sqlite"
          ? sqliteInbox(config.file, { existing: true })
          : redisInbox(String(config.target), { existing: true });
      const early = scope.add(open(), (one) => one.close({ graceMs: 0 }));
      await expect(early.ready()).rejects.toMatchObject({ code: "ERR_INBOX_UNUSED" });
      if (config.kind === "sqlite") expect(existsSync(config.file)).toBe(false);
      else {
        const client = new (await import("ioredis")).Redis(String(config.target));
        scope.add(client, (one) => one.disconnect());
        expect(await client.dbsize()).toBe(0);
      }
      await startReceiver(scope, config, (receiver) => receiver.onDeposit(() => {}));
      await expect(early.ready()).resolves.toBeUndefined();
    }));
});
