/** examples/redis: two servers and a worker behind one Redis, restarted one after another while callbacks arrive. */
import { expect, it } from "vitest";
import { RunningProgram } from "../e2e/program.ts";
import { freePort } from "../support/free-port.ts";
import { type TestEvent, testEvent } from "./harness/events.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys } from "./harness/system.ts";

it("a rolling restart of the example by SIGTERM loses and repeats nothing", { timeout: 120_000 }, () =>
  withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const env = { PAY_PUBLIC_KEY: keys.publicKey, REDIS_URL: redis.url };
    const programs: RunningProgram[] = [];
    const start = async (name: "server" | "worker", port = 0): Promise<RunningProgram> => {
      const program = new RunningProgram(`examples/redis/src/${name}.ts`, [], { ...env, PORT: String(port) });
      scope.add(program, async (one) => {
        one.kill();
        await one.exitCode;
      });
      programs.push(program);
      await program.until(name === "server" ? /listening/ : /working/);
      return program;
    };
    const stop = async (program: RunningProgram): Promise<void> => {
      program.signal("SIGTERM");
      expect(await program.exitCode, program.output).toBe(0);
    };
    const ports = [await freePort(), await freePort()] as const;
    let [one, two] = await Promise.all(ports.map((port) => start("server", port)));
    let worker = await start("worker");
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
    await stop(worker);
    await acknowledges(10);
    worker = await start("worker");
    if (one === undefined || two === undefined) throw new Error("there are two servers");
    await stop(one);
    one = await start("server", ports[0]);
    await acknowledges(20);
    await stop(two);
    two = await start("server", ports[1]);
    await acknowledges(20);
    over = true;
    await sending;
    const credits = (id: string): number =>
      programs.reduce((sum, { output }) => sum + output.split(`for calm-${id} once`).length - 1, 0);
    const acknowledged = [...sender.acknowledged.values()];
    await until("every acknowledged deposit is credited", () =>
      acknowledged.every(({ payTxnId }) => credits(payTxnId) > 0),
    );
    expect(acknowledged.length).toBeGreaterThanOrEqual(70);
    expect(sent.filter(({ payTxnId }) => credits(payTxnId) > 1)).toEqual([]);
    for (const program of [one, two, worker]) await stop(program);
  }),
);
