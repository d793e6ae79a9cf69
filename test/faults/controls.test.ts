/** Mistakes that this suite must catch: each is played twice, with the mistake and without it. */
import { describe, expect, it } from "vitest";
import type { ChildConfig, InboxConfig, Variant } from "./harness/child-config.ts";
import { testEvent } from "./harness/events.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { NetworkProxy } from "./harness/proxy.ts";
import { freePort, RedisServer } from "./harness/redis-server.ts";
import { report } from "./harness/report.ts";
import { newSeed, type Scope, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { isCaught, keys, SOUND, System, type Verdict } from "./harness/system.ts";

/** What a scenario is played on. */
interface Stage {
  readonly scope: Scope;
  readonly redis: RedisServer;
  readonly system: System;
  readonly config: ChildConfig;
  readonly sender: Sender;
}

type Scenario = (stage: Stage) => Promise<void>;

async function play(
  name: string,
  variant: Variant | null,
  scenario: Scenario,
  inboxAt: (scope: Scope, redis: RedisServer) => Promise<InboxConfig>,
): Promise<Verdict> {
  return withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const system = System.create(scope, await inboxAt(scope, redis), newSeed(name));
    const config = await system.config({ maxTries: 25, ...(variant === null ? {} : { variant }) });
    const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
    await scenario({ scope, redis, system, config, sender });
    const verdict = await system.judge(sender);
    if (variant !== null) report(`control: ${name}`, verdict, sender, "must be caught");
    return verdict;
  });
}

const atRedis = async (_: Scope, redis: RedisServer): Promise<InboxConfig> => ({
  kind: "redis",
  target: redis.url,
});

function control(
  name: string,
  variant: Variant,
  scenario: Scenario,
  inboxAt: (scope: Scope, redis: RedisServer) => Promise<InboxConfig> = atRedis,
): void {
  it(name, { timeout: 90_000 }, async () => {
    const [mistaken, right] = await Promise.all([
      play(name, variant, scenario, inboxAt),
      play(`${name}, without the mistake`, null, scenario, inboxAt),
    ]);
    expect(right).toMatchObject(SOUND);
    expect(right.acknowledged).toBeGreaterThan(0);
    expect(isCaught(mistaken), "the mistake is caught").toBe(true);
  });
}

describe.concurrent("the suite catches", () => {
  control("BullMQ's default maxStalledCount", "default-stalled-count", async (stage) => {
    const { scope, system, config, sender } = stage;
    const events = Array.from({ length: 8 }, () => testEvent(keys.privateKey, { manner: "slow" }));
    for (let deaths = 0; deaths < 3; deaths++) {
      const one = await ProcessUnderTest.start(scope, config);
      if (deaths === 0) await sender.sendAll(events);
      const taken = (): number => system.lines("started").filter(({ pid }) => pid === one.pid).length;
      // Where the job was failed for good, nobody takes it any more: that is what is to be shown.
      await until("they are taken", () => taken() === 8 || null, { withinMs: 6_000 }).catch(() => {});
      await one.kill();
    }
    await ProcessUnderTest.start(scope, config);
  });

  control("an acknowledgement before the add", "acknowledge-before-add", async (stage) => {
    const { scope, config, sender } = stage;
    for (let deaths = 0; deaths < 3; deaths++) {
      const one = await ProcessUnderTest.start(scope, config);
      await sender.sendAll(Array.from({ length: 10 }, () => testEvent(keys.privateKey)));
      await one.kill();
    }
    await ProcessUnderTest.start(scope, config);
  });

  control("deduplication by a plain SET NX", "set-nx", async (stage) => {
    const { scope, config, sender } = stage;
    const killAt = { point: "2 claimed", nth: 3 } as const;
    const one = await ProcessUnderTest.start(scope, { ...config, killAt });
    const sending = sender.sendAll(Array.from({ length: 5 }, () => testEvent(keys.privateKey)));
    await one.exited;
    await ProcessUnderTest.start(scope, config);
    await sending;
  });

  control("a conflict whose add failed, answered as a duplicate", "conflict-forgotten", async (stage) => {
    const { scope, system, config, sender } = stage;
    const one = await ProcessUnderTest.start(scope, config);
    const success = testEvent(keys.privateKey, { status: "SUCCESS" });
    await sender.sendAll([success]);
    await until("it is done", () => system.lines("completed").length === 1);
    await one.kill();
    const killAt = { point: "2 claimed", nth: 1 } as const;
    const two = await ProcessUnderTest.start(scope, { ...config, killAt });
    const conflict = testEvent(keys.privateKey, { status: "FAILED", payTxnId: success.payTxnId });
    const sending = sender.sendAll([conflict]);
    await two.exited;
    await ProcessUnderTest.start(scope, config);
    await sending;
  });

  control(
    "a flag that is set before the barrier",
    "flag-before-barrier",
    async ({ scope, redis, config, sender }) => {
      const { replica, proxy } = replicas.get(redis) ?? missing();
      // Nothing runs before the failover: what is completed by then cannot be lost.
      await ProcessUnderTest.start(scope, { ...config, run: "elsewhere" });
      await sender.sendAll([testEvent(keys.privateKey)]);
      // From here on nothing reaches the replica, and what the primary alone has dies with it.
      replica.freeze();
      await redis.tell("CLIENT", "KILL", "TYPE", "replica");
      const events = Array.from({ length: 5 }, () => testEvent(keys.privateKey));
      for (let copy = 0; copy < 2; copy++) {
        await Promise.all(events.map((event) => sender.attempt(event)));
      }
      await redis.kill();
      replica.thaw();
      await replica.tell("REPLICAOF", "NO", "ONE");
      proxy.target = replica.port;
      proxy.reset();
      // A new primary without a replica of its own would keep the barrier shut for good.
      const next = await RedisServer.start(scope, { replicaOf: replica.port });
      await until("the new replica follows", async () => (await next.info("master_link_status")) === "up");
      await sender.sendAll(events.filter(({ key }) => !sender.acknowledged.has(key)));
      await ProcessUnderTest.start(scope, { ...config, port: await freePort() });
    },
    async (scope, redis) => {
      const replica = await RedisServer.start(scope, { replicaOf: redis.port });
      await until("the replica follows", async () => (await replica.info("master_link_status")) === "up");
      const proxy = await NetworkProxy.start(scope, redis.port);
      replicas.set(redis, { replica, proxy });
      return { kind: "redis", target: proxy.url, replicas: 1 };
    },
  );
});

const replicas = new WeakMap<RedisServer, { readonly replica: RedisServer; readonly proxy: NetworkProxy }>();

function missing(): never {
  throw new Error("this scenario needs a replica");
}
