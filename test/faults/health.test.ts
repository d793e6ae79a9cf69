/** `health().ok` says what a delivery would be answered now. */
import { spawnSync } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Receiver } from "@payhooks/core";
import { type RedisInboxOptions, redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { describe, expect, it } from "vitest";
import { silent } from "../support/silent.ts";
import { Disk, mayMakeDisks } from "./harness/disk.ts";
import { testEvent } from "./harness/events.ts";
import { deliver, startReceiver } from "./harness/receivers.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { pause, type Scope, until, withScope } from "./harness/scope.ts";
import { keys } from "./harness/system.ts";

const event = () => testEvent(keys.privateKey);
const noHandler = (receiver: Receiver): unknown => receiver.onDeposit(() => {});

/** Health, and what a delivery is answered, are the same; `detail` says why not. */
async function expectNotAccepting(receiver: Receiver, detail: string): Promise<void> {
  await until("it says so", async () => !(await receiver.health()).ok, { withinMs: 5_000 });
  expect(await receiver.health()).toMatchObject({ ok: false, detail: expect.stringContaining(detail) });
  expect(await deliver(receiver, event())).toBe(503);
}

async function expectAccepting(receiver: Receiver): Promise<void> {
  await until("it is well", async () => (await receiver.health()).ok, { withinMs: 10_000 });
  expect(await receiver.health()).toMatchObject({ ok: true, detail: null });
  expect(await deliver(receiver, event())).toBe(200);
}

describe.concurrent("on Redis", { timeout: 60_000 }, () => {
  async function onRedis(scope: Scope, options: RedisInboxOptions = { commandTimeoutMs: 500 }) {
    const redis = await RedisServer.start(scope);
    const inbox = redisInbox(redis.url, { ...options, logger: silent });
    const { receiver } = await startReceiver(scope, inbox, noHandler);
    return { redis, receiver };
  }

  it("health fails while it is full", () =>
    withScope(async (scope) => {
      const { redis, receiver } = await onRedis(scope);
      await expectAccepting(receiver);
      await redis.tell("CONFIG", "SET", "maxmemory", "1");
      await expectNotAccepting(receiver, "OOM");
      await redis.tell("CONFIG", "SET", "maxmemory", "0");
      await expectAccepting(receiver);
    }));

  it("health fails while Redis is a replica", () =>
    withScope(async (scope) => {
      const { redis, receiver } = await onRedis(scope);
      await expectAccepting(receiver);
      await redis.tell("REPLICAOF", "127.0.0.1", "1");
      await until("it says so", async () => !(await receiver.health()).ok);
      expect(await deliver(receiver, event())).toBe(503);
      expect(await receiver.health()).toMatchObject({ ok: false });
      await redis.tell("REPLICAOF", "NO", "ONE");
      await expectAccepting(receiver);
    }));

  it("health fails while a required replica is missing", () =>
    withScope(async (scope) => {
      const { redis, receiver } = await onRedis(scope, { replicas: 1 });
      await expectNotAccepting(receiver, "0 of 1 replicas");
      await RedisServer.startReplica(scope, redis);
      await expectAccepting(receiver);
    }));

  it("health answers in time while the store is frozen", () =>
    withScope(async (scope) => {
      const { redis, receiver } = await onRedis(scope);
      await expectAccepting(receiver);
      redis.freeze();
      // A good answer is used again for a second.
      await pause(1_000);
      for (let time = 0; time < 3; time++) {
        const asked = performance.now();
        const { ok } = await receiver.health();
        expect(ok).toBe(false);
        expect(performance.now() - asked).toBeLessThan(2_500);
      }
      redis.thaw();
      await expectAccepting(receiver);
    }));
});

const newDisk = (scope: Scope): string | null => Disk.make(scope, "2m")?.folder ?? null;

function mount(...args: readonly string[]): boolean {
  return spawnSync("mount", args, { stdio: "ignore" }).status === 0;
}

describe.skipIf(!(await mayMakeDisks()))("on SQLite, on a disk", { timeout: 60_000 }, () => {
  it("health fails while it is full", () =>
    withScope(async (scope) => {
      const disk = newDisk(scope) ?? "";
      const { receiver } = await startReceiver(scope, sqliteInbox(join(disk, "inbox.db")), noHandler);
      await expectAccepting(receiver);
      spawnSync("dd", ["if=/dev/zero", `of=${join(disk, "other")}`, "bs=4096"], { stdio: "ignore" });
      // A delivery for which SQLite has room in its log may still be written.
      await until("it is full", async () => (await deliver(receiver, event())) === 503);
      await expectNotAccepting(receiver, "full");
      rmSync(join(disk, "other"));
      await expectAccepting(receiver);
    }));

  it("health fails if the disk is full from the start", () =>
    withScope(async (scope) => {
      const disk = newDisk(scope) ?? "";
      spawnSync("dd", ["if=/dev/zero", `of=${join(disk, "other")}`, "bs=4096"], { stdio: "ignore" });
      const inbox = sqliteInbox(join(disk, "inbox.db"));
      expect(await inbox.health()).toMatchObject({ ok: false });
      rmSync(join(disk, "other"));
      expect(await inbox.health()).toMatchObject({ ok: true });
      await inbox.close({ graceMs: 0 });
    }));

  it("health fails while the disk may only be read", () =>
    withScope(async (scope) => {
      const disk = newDisk(scope) ?? "";
      const before = sqliteInbox(join(disk, "inbox.db"));
      await before.ready();
      await before.close({ graceMs: 0 });
      // A file that this process has not had open: a handle from before could still write.
      copyFileSync(join(disk, "inbox.db"), join(disk, "copy.db"));
      // The same disk at another place, since a disk with open files cannot be made read-only.
      const place = newDisk(scope) ?? "";
      expect(mount("--bind", disk, place)).toBe(true);
      scope.add(place, (path) => spawnSync("umount", ["-l", path]));
      expect(mount("-o", "remount,bind,ro", place)).toBe(true);
      const inbox = sqliteInbox(join(place, "copy.db"));
      expect(await inbox.health()).toMatchObject({ ok: false });
      expect(mount("-o", "remount,bind,rw", place)).toBe(true);
      expect(await inbox.health()).toMatchObject({ ok: true });
      await inbox.close({ graceMs: 0 });
    }));
});
