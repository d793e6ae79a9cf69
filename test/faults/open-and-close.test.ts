/** Receivers that are opened and closed by the hundred leave nothing open: no file, no connection, no listener, no timer. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, type Inbox, memoryInbox } from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { silent } from "../support/silent.ts";
import { testEvent } from "./harness/events.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { type Scope, until, withScope } from "./harness/scope.ts";
import { keys } from "./harness/system.ts";

const TIMES = 200;
const PROCESS_EVENTS = [
  "exit",
  "beforeExit",
  "SIGTERM",
  "uncaughtException",
  "unhandledRejection",
  "warning",
];

/** The open handles of a process, from the system and from Node. */
function open(): { readonly files: number; readonly listeners: number; readonly timers: number } {
  return {
    files: readdirSync("/proc/self/fd").length,
    listeners: PROCESS_EVENTS.reduce((sum, name) => sum + process.listenerCount(name), 0),
    timers: process.getActiveResourcesInfo().filter((what) => what === "Timeout").length,
  };
}

/** Starts a receiver, sends it a delivery that it handles, and closes it. */
async function liveAndDie(inbox: Inbox): Promise<void> {
  let handled = (): void => {};
  const done = new Promise<void>((resolve) => {
    handled = resolve;
  });
  const receiver = createReceiver({ payments: { publicKey: keys.publicKey }, inbox, logger: silent });
  receiver.onDeposit(() => handled()).ignore("WITHDRAWAL");
  await receiver.start();
  const { delivery } = testEvent(keys.privateKey);
  const headers = { get: (name: string) => delivery.headers[name] ?? null };
  const { status } = await receiver.payments.receive({
    method: "POST",
    url: "/",
    headers,
    rawBody: delivery.rawBody,
  });
  expect(status).toBe(200);
  await done;
  expect(await receiver.close()).toEqual({ unfinished: 0 });
}

interface InboxUnderTest {
  readonly name: string;
  /** Makes an inbox each time, and tells how many connections the other end has. */
  readonly on: (scope: Scope) => Promise<{ make(): Inbox; connections(): Promise<number> }>;
}

const NONE = async (): Promise<number> => 0;
const clientsOf = (redis: RedisServer) => async (): Promise<number> =>
  Number(await redis.info("connected_clients"));

const INBOXES: readonly InboxUnderTest[] = [
  { name: "memory", on: async () => ({ make: () => memoryInbox(), connections: NONE }) },
  {
    name: "SQLite",
    on: async (scope) => {
      const folder = mkdtempSync(join(tmpdir(), "payhooks-open-"));
      scope.add(folder, (path) => rmSync(path, { recursive: true, force: true }));
      return { make: () => sqliteInbox(join(folder, "inbox.db")), connections: NONE };
    },
  },
  {
    name: "Redis, by its URL",
    on: async (scope) => {
      const redis = await RedisServer.start(scope);
      return { make: () => redisInbox(redis.url, { logger: silent }), connections: clientsOf(redis) };
    },
  },
  {
    name: "Redis, by a connection of the program's own, with replicas",
    on: async (scope) => {
      const redis = await RedisServer.start(scope);
      await RedisServer.startReplica(scope, redis);
      const own = scope.add(new Redis(redis.url), (one) => one.disconnect());
      await own.ping();
      const make = (): Inbox => {
        expect(own.eventNames().map((name) => own.listenerCount(name))).toEqual([]);
        return redisInbox(own, { replicas: 1, logger: silent });
      };
      return { make, connections: clientsOf(redis) };
    },
  },
];

describe(`opened and closed ${TIMES} times`, () => {
  it.each(INBOXES)("$name: nothing stays open", { timeout: 120_000 }, ({ on }) =>
    withScope(async (scope) => {
      const { make, connections } = await on(scope);
      // The first ones load drivers, and warm up what stays.
      for (let time = 0; time < 3; time++) await liveAndDie(make());
      await until("the connections of the first ones have ended", async () => (await connections()) <= 3);
      const before = { ...open(), connections: await connections() };
      for (let time = 0; time < TIMES; time++) await liveAndDie(make());
      let after = before;
      // The other end notices the end of a connection a little later.
      await until(
        "everything is as before",
        async () => {
          after = { ...open(), connections: await connections() };
          return (Object.keys(before) as (keyof typeof before)[]).every(
            (what) => after[what] <= before[what],
          );
        },
        { withinMs: 5_000 },
      ).catch(() => {});
      for (const what of Object.keys(before) as (keyof typeof before)[]) {
        expect(after[what], what).toBeLessThanOrEqual(before[what]);
      }
    }),
  );

  it("Redis that is not there: the attempts leave nothing open", { timeout: 60_000 }, async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const fail = async (): Promise<void> => {
      const inbox = redisInbox(url, { logger: silent });
      const receiver = createReceiver({ payments: { publicKey: keys.publicKey }, inbox, logger: silent });
      receiver.onDeposit(() => {}).ignore("WITHDRAWAL");
      // Some are closed while they connect.
      const starting = receiver.start().catch((error: { readonly code?: string }) => error.code);
      if (Math.random() < 0.5) expect(await starting).toBe("ERR_INBOX_UNAVAILABLE");
      expect(await receiver.close()).toEqual({ unfinished: 0 });
      await starting;
    };
    await fail();
    const before = open();
    for (let time = 0; time < TIMES; time++) await fail();
    // ioredis gives a connection that it ends two seconds.
    const isAsBefore = (): boolean => {
      const after = open();
      return after.files <= before.files && after.timers <= before.timers;
    };
    await until("everything is as before", isAsBefore, { withinMs: 5_000 });
  });
});
