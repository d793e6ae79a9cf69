/** examples/redis: two servers and a worker behind one Redis, restarted while callbacks arrive, and while handlers run. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { toJavaScript } from "../docs/program.ts";
import { type JavaScript, RunningProgram } from "../e2e/program.ts";
import { SlowService, withSlowDeposits } from "../examples/slow-service.ts";
import { root } from "../package/workspace.ts";
import { freePort } from "../support/free-port.ts";
import { type TestEvent, testEvent } from "./harness/events.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { type Scope, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys } from "./harness/system.ts";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

async function start(
  scope: Scope,
  redis: RedisServer,
  program: string | JavaScript,
  given: Readonly<Record<string, string>> = {},
): Promise<RunningProgram> {
  const env = { PAY_PUBLIC_KEY: keys.publicKey, REDIS_URL: redis.url, ...given };
  const running = scope.add(new RunningProgram(program, [], env), async (one) => {
    one.kill();
    await one.exitCode;
  });
  await running.until(/listening|working/);
  return running;
}

async function stop(program: RunningProgram, signal: NodeJS.Signals): Promise<void> {
  program.signal(signal);
  expect(await program.exitCode, program.output).toBe(0);
}

const credits = ({ output }: RunningProgram): readonly string[] =>
  [...output.matchAll(/credit .* for (\S+) once/g)].map(([, reference = ""]) => reference);

it.each(SIGNALS)(
  "a worker lets handlers end that are under way, and leaves the rest to another one: %s",
  { timeout: 60_000 },
  (signal) =>
    withScope(async (scope) => {
      const redis = await RedisServer.start(scope);
      const port = await freePort();
      const server = await start(scope, redis, "examples/redis/src/server.ts", { PORT: String(port) });
      const service = await SlowService.start(scope);
      const source = readFileSync(join(root, "examples/redis/src/worker.ts"), "utf8");
      const slow = { code: toJavaScript(withSlowDeposits(source)), folder: "examples/redis/src" };
      const worker = await start(scope, redis, slow, service.environment);
      const sender = scope.add(new Sender({ ports: [port] }), (it) => it.close());
      // More than run at the same time.
      await sender.sendAll(Array.from({ length: 20 }, () => testEvent(keys.privateKey)));
      expect(sender.acknowledged.size).toBe(20);
      await until("all places are taken", () => service.calls.length === 16);
      worker.signal(signal);
      // As npm does after Ctrl-C.
      worker.signal(signal);
      const other = await start(scope, redis, slow, service.environment);
      await until("another worker has the rest", () => service.calls.length === 20);
      service.answer();
      expect(await worker.exitCode, worker.output).toBe(0);
      await until("all is credited", () => credits(other).length >= 4);
      await stop(other, signal);
      await stop(server, signal);
      expect(credits(worker)).toHaveLength(16);
      expect([...credits(worker), ...credits(other)].sort()).toEqual(
        [...sender.acknowledged.values()].map(({ payTxnId }) => `calm-${payTxnId}`).sort(),
      );
    }),
);

it("a rolling restart of the example by signals loses and repeats nothing", { timeout: 120_000 }, () =>
  withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const programs: RunningProgram[] = [];
    const started = async (name: "server" | "worker", port = 0): Promise<RunningProgram> => {
      const program = await start(scope, redis, `examples/redis/src/${name}.ts`, { PORT: String(port) });
      programs.push(program);
      return program;
    };
    const ports = [await freePort(), await freePort()] as const;
    let [one, two] = await Promise.all(ports.map((port) => started("server", port)));
    let worker = await started("worker");
    const sender = scope.add(new Sender({ ports }), (it) => it.close());
    const sent: TestEvent[] = [];
    let over = false;
    const sending = sender.run(
      () => {
        const event = testEvent(keys.privateKey);
        sent.push(event);
        return event;
      },
      { isOver: () => over, perSecond: 40 },
    );
    scope.add(null, () => {
      over = true;
      return sending;
    });
    const acknowledges = async (more: number): Promise<void> => {
      const enough = sender.acknowledged.size + more;
      await until("it acknowledges", () => sender.acknowledged.size >= enough);
    };
    await acknowledges(20);
    await stop(worker, "SIGTERM");
    await acknowledges(10);
    worker = await started("worker");
    if (one === undefined || two === undefined) throw new Error("there are two servers");
    await stop(one, "SIGTERM");
    one = await started("server", ports[0]);
    await acknowledges(20);
    await stop(two, "SIGINT");
    two = await started("server", ports[1]);
    await acknowledges(20);
    over = true;
    await sending;
    const creditsOf = (id: string): number =>
      programs.flatMap(credits).filter((reference) => reference === `calm-${id}`).length;
    const acknowledged = [...sender.acknowledged.values()];
    await until("every acknowledged deposit is credited", () =>
      acknowledged.every(({ payTxnId }) => creditsOf(payTxnId) > 0),
    );
    expect(acknowledged.length).toBeGreaterThanOrEqual(70);
    expect(sent.filter(({ payTxnId }) => creditsOf(payTxnId) > 1)).toEqual([]);
    for (const program of [one, two, worker]) await stop(program, "SIGINT");
  }),
);
