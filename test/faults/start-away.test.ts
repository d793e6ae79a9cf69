/** A process starts while its store is away. When the store is back, what waits is run, although nobody delivers. */
import { createReceiver, type Inbox, type Notice } from "@payhooks/core";
import { postgresInbox } from "@payhooks/core/postgres";
import { redisInbox } from "@payhooks/core/redis";
import { expect, it } from "vitest";
import { silent } from "../support/silent.ts";
import { testEvent } from "./harness/events.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { NetworkProxy } from "./harness/proxy.ts";
import { deliver } from "./harness/receivers.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { type Scope, until, withScope } from "./harness/scope.ts";
import { keys } from "./harness/system.ts";

interface Place {
  readonly proxy: NetworkProxy;
  readonly inbox: () => Inbox;
}

async function onRedis(scope: Scope): Promise<Place> {
  const redis = await RedisServer.start(scope);
  const proxy = await NetworkProxy.start(scope, redis.port);
  return { proxy, inbox: () => redisInbox(proxy.url, { logger: silent }) };
}

async function onPostgres(scope: Scope): Promise<Place> {
  const server = await PostgresServer.start(scope);
  const url = new URL(server.url);
  const proxy = await NetworkProxy.start(scope, Number(url.port));
  url.port = String(proxy.port);
  return { proxy, inbox: () => postgresInbox(url.href, { logger: silent }) };
}

it.each([
  ["Redis", onRedis],
  ["PostgreSQL", onPostgres],
])(
  "a start without %s is repeated, ready says so meanwhile, and then the waiting events run",
  { timeout: 90_000 },
  (_, make) =>
    withScope(async (scope) => {
      const { proxy, inbox } = await make(scope);
      const options = { payments: { publicKey: keys.publicKey }, logger: silent };
      const before = createReceiver({ ...options, inbox: inbox(), run: "elsewhere" });
      await before.start();
      for (let count = 0; count < 5; count++)
        expect(await deliver(before, testEvent(keys.privateKey))).toBe(200);
      await before.close({ graceMs: 0 });

      proxy.refuse(true);
      let ran = 0;
      const receiver = scope.add(createReceiver({ ...options, inbox: inbox() }), (one) =>
        one.close({ graceMs: 0 }),
      );
      receiver.onDeposit(() => void ran++).ignore("WITHDRAWAL");
      const stalls: string[] = [];
      receiver.observe((notice: Notice) => {
        if (notice.type === "stalled" || notice.type === "recovered")
          stalls.push(`${notice.type} ${notice.during}`);
      });
      await expect(receiver.start()).rejects.toMatchObject({ code: "ERR_INBOX_UNAVAILABLE" });
      await until("it has stalled", () => stalls.length > 0);
      expect(await receiver.ready()).toMatchObject({ ok: false, code: "not-started" });
      expect(await receiver.health()).toMatchObject({ ok: false, failing: "start" });

      proxy.refuse(false);
      await until("what waits is run", () => ran === 5, { withinMs: 30_000 });
      expect(await receiver.ready()).toMatchObject({ ok: true });
      expect(stalls).toEqual(["stalled start", "recovered start"]);
    }),
);
