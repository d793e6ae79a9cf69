/** SIGTERM: a process does what it has begun, ends each connection, and then ends by itself. */
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Balancer } from "./harness/balancer.ts";
import { type ChildConfig, GRACE_MS, type InboxConfig } from "./harness/child-config.ts";
import { testEvent } from "./harness/events.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { lengthOf, report } from "./harness/report.ts";
import { newSeed, type Scope, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, LONG_LEASE_MS, SOUND, System } from "./harness/system.ts";

/** After its grace, a process has only connections to close: ioredis gives them 2 s. */
const END_WITHIN_MS = GRACE_MS + 4_000;

async function endsWithin(one: ProcessUnderTest): Promise<{ readonly code: number | null; tookMs: number }> {
  const startedAt = performance.now();
  const { code } = await one.terminate();
  return { code, tookMs: performance.now() - startedAt };
}

function sqliteFile(scope: Scope): InboxConfig {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-shutdown-"));
  scope.add(folder, (path) => rmSync(path, { recursive: true, force: true }));
  const driver = createRequire(import.meta.url).resolve("libsql");
  return { kind: "sqlite", file: join(folder, "inbox.db"), driver };
}

/** A process whose handlers take 3 s, with two of them under way. */
async function withHandlersUnderWay(
  scope: Scope,
  system: System,
): Promise<{ readonly one: ProcessUnderTest; readonly config: ChildConfig; readonly sender: Sender }> {
  const config = await system.config({ leaseMs: LONG_LEASE_MS });
  const one = await ProcessUnderTest.start(scope, config);
  const sender = scope.add(new Sender({ ports: [config.port] }), (it) => it.close());
  const events = [1, 2].map(() => testEvent(keys.privateKey, { manner: "long" }));
  await sender.sendAll(events);
  await until("both handlers have started", () => system.lines("started").length === 2);
  return { one, config, sender };
}

describe.concurrent("a process that gets a signal to end", () => {
  it.each<{ readonly name: string; readonly inboxAt: (scope: Scope) => Promise<InboxConfig> }>([
    {
      name: "Redis",
      inboxAt: async (scope) => ({ kind: "redis", target: (await RedisServer.start(scope)).url }),
    },
    { name: "SQLite", inboxAt: async (scope) => sqliteFile(scope) },
  ])(
    "waits for its handlers, which run once, and ends by itself: $name",
    { timeout: 60_000 },
    ({ name, inboxAt }) =>
      withScope(async (scope) => {
        const system = System.create(scope, await inboxAt(scope), newSeed(`shutdown on ${name}`));
        const { one, config, sender } = await withHandlersUnderWay(scope, system);
        const { code, tookMs } = await endsWithin(one);
        expect(code).toBe(0);
        expect(tookMs).toBeLessThan(END_WITHIN_MS);
        expect(system.lines("completed")).toHaveLength(2);
        await ProcessUnderTest.start(scope, config);
        const verdict = await system.judge(sender, { leaseMs: LONG_LEASE_MS });
        report(`SIGTERM with handlers under way: ${name}`, verdict, sender);
        expect(verdict).toMatchObject({ ...SOUND, doubles: [] });
        expect(system.lines("started")).toHaveLength(2);
      }),
  );

  it.each<{ readonly name: string; readonly fault: (redis: RedisServer) => Promise<void> | void }>([
    { name: "is away", fault: (redis) => redis.kill() },
    { name: "is frozen", fault: (redis) => redis.freeze() },
  ])(
    "ends in time when Redis $name, and says how many events are unfinished",
    { timeout: 60_000 },
    ({ name, fault }) =>
      withScope(async (scope) => {
        const redis = await RedisServer.start(scope);
        const system = System.create(scope, { kind: "redis", target: redis.url }, newSeed(name));
        const { one } = await withHandlersUnderWay(scope, system);
        await fault(redis);
        const { code, tookMs } = await endsWithin(one);
        expect(code, "some are unfinished").toBe(3);
        expect(tookMs).toBeLessThan(END_WITHIN_MS);
        // Their ends could not be written, but they came to them.
        expect(system.lines("completed")).toHaveLength(2);
      }),
  );

  it("ends in time although Redis was never there", { timeout: 60_000 }, () =>
    withScope(async (scope) => {
      const redis = await RedisServer.start(scope);
      await redis.kill();
      const system = System.create(scope, { kind: "redis", target: redis.url }, newSeed("never there"));
      const config = await system.config();
      const one = await ProcessUnderTest.start(scope, config);
      const sender = scope.add(new Sender({ ports: [config.port] }), (it) => it.close());
      const { status } = await sender.attempt(testEvent(keys.privateKey));
      expect(status).toBe(503);
      const { code, tookMs } = await endsWithin(one);
      expect(code).toBe(0);
      expect(tookMs).toBeLessThan(END_WITHIN_MS);
    }),
  );

  it(
    "ends in time although connections are open that say nothing, or half of a request",
    {
      timeout: 60_000,
    },
    () =>
      withScope(async (scope) => {
        const system = System.create(scope, sqliteFile(scope), newSeed("open connections"));
        const config = await system.config();
        const one = await ProcessUnderTest.start(scope, config);
        for (const said of ["", "POST /callbacks/pay HTTP/1.1\r\nhost: x\r\ncontent-le"]) {
          const socket = scope.add(connect(config.port, "127.0.0.1"), (it) => it.destroy());
          socket.on("error", () => {});
          await new Promise((resolve) => socket.once("connect", resolve));
          if (said !== "") socket.write(said);
        }
        const { code, tookMs } = await endsWithin(one);
        expect(code).toBe(0);
        expect(tookMs).toBeLessThan(END_WITHIN_MS);
      }),
  );
});

describe("rolling restarts behind a balancer that keeps connections alive", () => {
  const restarts = lengthOf(4, 20);
  it(
    `${restarts} times: nothing lost, nothing twice, at most one 503 per open connection and restart`,
    {
      timeout: 60_000 + restarts * 10_000,
    },
    () =>
      withScope(async (scope) => {
        const redis = await RedisServer.start(scope);
        const seed = newSeed("rolling restarts behind a balancer");
        const system = System.create(scope, { kind: "redis", target: redis.url }, seed);
        const configs = await Promise.all(
          [1, 2, 3].map(() => system.config({ handlerMs: 200, leaseMs: LONG_LEASE_MS })),
        );
        const processes = await Promise.all(configs.map((config) => ProcessUnderTest.start(scope, config)));
        const balancer = await Balancer.start(
          scope,
          configs.map(({ port }) => port),
        );
        const sender = scope.add(new Sender({ ports: [balancer.port], lanes: 24 }), (one) => one.close());
        let over = false;
        const sending = sender.run(() => testEvent(keys.privateKey), { isOver: () => over, perSecond: 150 });
        scope.add(null, () => {
          over = true;
          return sending;
        });
        const acknowledges = async (more: number): Promise<void> => {
          const enough = sender.acknowledged.size + more;
          await until("more is acknowledged", () => sender.acknowledged.size >= enough);
        };
        const tooMany: string[] = [];
        let refused = 0;
        let broken = 0;
        for (let restart = 0; restart < restarts; restart++) {
          const turn = restart % configs.length;
          const [config, old] = [configs[turn], processes[turn]];
          if (config === undefined || old === undefined) throw new Error("there are three processes");
          await acknowledges(60);
          const refusedBefore = balancer.refusedBy(config.port);
          const brokenBefore = balancer.brokenBy(config.port);
          const open = balancer.connectionsTo(config.port);
          const { code, tookMs } = await endsWithin(old);
          expect(code).toBe(0);
          expect(tookMs).toBeLessThan(END_WITHIN_MS);
          const unavailable = balancer.refusedBy(config.port) - refusedBefore;
          const cut = balancer.brokenBy(config.port) - brokenBefore;
          refused += unavailable;
          broken += cut;
          if (unavailable + cut > open) {
            tooMany.push(`restart ${restart}: ${unavailable} times 503, ${cut} cut off, ${open} connections`);
          }
          processes[turn] = await ProcessUnderTest.start(scope, config);
        }
        await acknowledges(60);
        over = true;
        await sending;
        const verdict = await system.judge(sender, { leaseMs: LONG_LEASE_MS });
        const note = `${refused} times 503, ${broken} connections ended under a request`;
        report(`rolling restart behind a balancer × ${restarts}`, verdict, sender, note);
        expect(tooMany).toEqual([]);
        expect(verdict.acknowledged).toBeGreaterThanOrEqual(60 * restarts);
        expect(verdict).toMatchObject({ lost: [], doubles: [] });
        expect(system.lines("notice").filter(({ detail }) => detail === "double-risk")).toEqual([]);
      }),
  );
});
