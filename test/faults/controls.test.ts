/** Mistakes that this suite must catch: each is played twice, with the mistake and without it. */
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import type { ChildConfig, InboxConfig, Variant } from "./harness/child-config.ts";
import { testEvent } from "./harness/events.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { NetworkProxy } from "./harness/proxy.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { report } from "./harness/report.ts";
import { newSeed, type Scope, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { isCaught, keys, SOUND, System, type Verdict } from "./harness/system.ts";

/** The inbox of a scenario. */
interface Stage {
  readonly scope: Scope;
  readonly redis: RedisServer;
  readonly system: System;
  readonly config: ChildConfig;
  readonly sender: Sender;
}

type Scenario = (stage: Stage) => Promise<void>;

/** A scenario, and what tells that the mistake did harm in it. */
interface Control {
  readonly scenario: Scenario;
  readonly inboxAt?: (scope: Scope, redis: RedisServer) => Promise<InboxConfig>;
  /** Default: something is lost, untold, or done twice in silence. */
  readonly harm?: (verdict: Verdict, system: System) => boolean;
  /** The scenario without the mistake. Default: the inbox as it is. */
  readonly right?: Variant;
}

interface Played {
  readonly verdict: Verdict;
  readonly isHarmed: boolean;
}

async function play(
  name: string,
  variant: Variant | undefined,
  isMistake: boolean,
  { scenario, inboxAt = atRedis, harm = isCaught }: Control,
): Promise<Played> {
  return withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const system = System.create(scope, await inboxAt(scope, redis), newSeed(name));
    const config = await system.config(variant === undefined ? {} : { variant });
    const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
    await scenario({ scope, redis, system, config, sender });
    const verdict = await system.judge(sender);
    if (isMistake) report(`control: ${name}`, verdict, sender, "must be caught");
    return { verdict, isHarmed: harm(verdict, system) };
  });
}

/** Long ones, of the control whose leases lapse. */
const EVENTS = 4;

const atRedis = async (_: Scope, redis: RedisServer): Promise<InboxConfig> => ({
  kind: "redis",
  target: redis.url,
});

function control(name: string, variant: Variant, plan: Control): void {
  it(name, { timeout: 90_000 }, async () => {
    const [mistaken, right] = await Promise.all([
      play(name, variant, true, plan),
      play(`${name}, without the mistake`, plan.right, false, plan),
    ]);
    expect(right.verdict).toMatchObject(SOUND);
    expect(right.isHarmed).toBe(false);
    expect(right.verdict.acknowledged).toBeGreaterThan(0);
    expect(mistaken.isHarmed, "the mistake is caught").toBe(true);
  });
}

const proxies = new WeakMap<RedisServer, NetworkProxy>();
const replicas = new WeakMap<RedisServer, RedisServer>();

function thingOf<T>(things: WeakMap<RedisServer, T>, redis: RedisServer): T {
  const thing = things.get(redis);
  if (thing === undefined) throw new Error("this scenario has none");
  return thing;
}

async function behindProxy(scope: Scope, redis: RedisServer): Promise<InboxConfig> {
  const proxy = await NetworkProxy.start(scope, redis.port);
  proxies.set(redis, proxy);
  return { kind: "redis", target: proxy.url };
}

describe.concurrent("the suite catches", () => {
  control("an acknowledgement before the write", "acknowledge-before-write", {
    async scenario({ scope, config, sender }) {
      for (let deaths = 0; deaths < 3; deaths++) {
        const one = await ProcessUnderTest.start(scope, { ...config, run: "elsewhere" });
        await sender.sendAll(Array.from({ length: 10 }, () => testEvent(keys.privateKey)));
        await one.kill();
      }
      await ProcessUnderTest.start(scope, config);
    },
  });

  control("deduplication by a plain SET NX", "set-nx", {
    async scenario({ scope, config, sender }) {
      const killAt = { point: "before accept and begin", nth: 3 } as const;
      const one = await ProcessUnderTest.start(scope, { ...config, killAt });
      const sending = sender.sendAll(Array.from({ length: 5 }, () => testEvent(keys.privateKey)));
      await one.exited;
      await ProcessUnderTest.start(scope, config);
      await sending;
    },
  });

  control("a conflict that is answered as a duplicate", "conflict-as-duplicate", {
    async scenario({ scope, system, config, sender }) {
      await ProcessUnderTest.start(scope, config);
      const success = testEvent(keys.privateKey, { status: "SUCCESS" });
      await sender.sendAll([success]);
      await until("it is done", () => system.lines("completed").length === 1);
      await sender.sendAll([testEvent(keys.privateKey, { status: "FAILED", payTxnId: success.payTxnId })]);
    },
  });

  control("an answer that rests on what this process wrote before", "old-guess", {
    inboxAt: behindProxy,
    async scenario({ scope, redis, config, sender }) {
      const proxy = thingOf(proxies, redis);
      const one = await ProcessUnderTest.start(scope, { ...config, run: "elsewhere" });
      await sender.sendAll([testEvent(keys.privateKey)]);
      // It is written, but nobody hears of that in time; and then Redis is replaced by an empty one.
      proxy.latencyMs = 4_000;
      const event = testEvent(keys.privateKey);
      const { status } = await sender.attempt(event);
      expect(status).toBe(503);
      await until("it is written", async () => Number(await redis.tell("DBSIZE")) > 1);
      proxy.refuse(true);
      await redis.tell("FLUSHALL");
      proxy.latencyMs = 0;
      proxy.refuse(false);
      sender.acknowledged.clear();
      await sender.sendAll([event]);
      await one.kill();
      await ProcessUnderTest.start(scope, config);
    },
  });

  control("a queue that forgets what it has handed out", "taken-for-good", {
    async scenario({ scope, config, sender }) {
      const one = await ProcessUnderTest.start(scope, { ...config, run: "elsewhere" });
      await sender.sendAll(Array.from({ length: 8 }, () => testEvent(keys.privateKey)));
      await one.kill();
      const two = ProcessUnderTest.spawn(scope, { ...config, killAt: { point: "after take", nth: 1 } });
      await two.exited;
      await ProcessUnderTest.start(scope, config);
    },
  });

  control("a lease that is not renewed", "lease-not-renewed", {
    harm: ({ doubles }) => doubles.length > 0,
    async scenario({ scope, system, config, sender }) {
      const { variant: _, ...sound } = { ...config, leaseMs: 1_000 };
      await ProcessUnderTest.start(scope, { ...config, leaseMs: sound.leaseMs });
      await ProcessUnderTest.start(scope, { ...sound, port: await freePort() });
      await sender.sendAll(
        Array.from({ length: EVENTS }, () => testEvent(keys.privateKey, { manner: "long" })),
      );
      // One double is enough.
      await until("all has ended, or something twice", () => {
        const [started, completed] = [system.lines("started"), system.lines("completed")];
        const ended = new Set(completed.map(({ key }) => key));
        const all = ended.size === EVENTS && started.length === completed.length;
        return all || completed.length > ended.size;
      });
    },
  });

  control("its own write taken for another's", "writes-twice-unrecognised", {
    right: "writes-twice",
    harm: (verdict, system) =>
      isCaught(verdict) || system.lines("notice").some(({ detail }) => detail === "double-risk"),
    async scenario({ scope, config, sender }) {
      await ProcessUnderTest.start(scope, config);
      await sender.sendAll(Array.from({ length: 20 }, () => testEvent(keys.privateKey)));
    },
  });

  control("a copy that is acknowledged before replicas have the event", "copy-unreplicated", {
    async inboxAt(scope, redis) {
      const replica = await RedisServer.startReplica(scope, redis);
      replicas.set(redis, replica);
      return { ...(await behindProxy(scope, redis)), replicas: 1 } as InboxConfig;
    },
    async scenario({ scope, redis, config, sender }) {
      const [replica, proxy] = [thingOf(replicas, redis), thingOf(proxies, redis)];
      // Nothing runs before the failover: what is completed by then cannot be lost.
      const one = await ProcessUnderTest.start(scope, { ...config, run: "elsewhere" });
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
      // A new primary without a replica of its own could confirm nothing.
      await RedisServer.startReplica(scope, replica);
      await sender.sendAll(events.filter(({ key }) => !sender.acknowledged.has(key)));
      await one.kill();
      await ProcessUnderTest.start(scope, config);
    },
  });
});
