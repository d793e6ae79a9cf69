/** The inbox in a Durable Object, on workerd: the contracts, and events whose object is evicted or killed. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { callbackFields, signPaymentCallback } from "@payhooks/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Command, ENVIRONMENT, KEYS, type Server, startServer } from "../conformance/targets.ts";
import { durableObjectCases } from "../contract/durable-object-cases.ts";
import { until, withScope } from "../faults/harness/scope.ts";
import { root } from "../package/workspace.ts";
import { onWorkerd } from "./workerd.ts";

const require = createRequire(import.meta.url);

/** Bundles the sources, so that the contracts may look into them. */
const onSources = (entry: string, object: string): Promise<Command> =>
  onWorkerd(join(root, "test/runtimes", entry), ENVIRONMENT, {
    objects: { [object.toUpperCase()]: object },
    esbuildOptions: (options) => {
      options.conditions = ["payhooks-source", "workerd", "worker", "module"];
      options.alias = {
        vitest: join(root, "test/runtimes/expect.mjs"),
        // A part of vitest, and so where vitest can find it.
        "@vitest/expect": createRequire(require.resolve("vitest/package.json")).resolve("@vitest/expect"),
      };
    },
  });

describe("the contracts of stores and of inboxes in a Durable Object", () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer(await onSources("durable-object-contract.ts", "Contract"));
  }, 120_000);
  afterAll(() => server.stop());

  // Nobody runs these here: workerd has the same list, and runs the one with this number.
  const cases = durableObjectCases({
    sql: { exec: () => expect.fail("nothing is stored here") },
    transactionSync: () => expect.fail("nothing is stored here"),
    setAlarm: () => expect.fail("nothing is stored here"),
    deleteAlarm: () => expect.fail("nothing is stored here"),
  });
  it.each(cases.map(({ name }, at) => ({ name, at })))(
    "$name",
    { timeout: 180_000 },
    async ({ name, at }) => {
      const answer = await fetch(`http://127.0.0.1:${server.port}/${at}`);
      expect(await answer.text()).toBe(`passed: ${name}`);
    },
  );
});

/** Delivers a deposit. True if it was acknowledged, false if the server died before. */
async function deliver({ port }: Server, referenceId: string): Promise<boolean> {
  const { headers, rawBody } = signPaymentCallback(callbackFields({ referenceId }), KEYS.privateKey);
  const request = { method: "POST", headers, body: Buffer.from(rawBody) };
  const answer = await fetch(`http://127.0.0.1:${port}/callbacks/pay`, request).catch(() => null);
  if (answer !== null) expect(answer.status).toBe(200);
  return answer !== null;
}

/** How often the server has printed this. */
const times = ({ output }: Server, text: string): number => output().split(text).length - 1;

describe("an acknowledged event", { timeout: 180_000 }, () => {
  let merchant: Command;
  beforeAll(async () => {
    merchant = await onSources("durable-object-merchant.ts", "Merchant");
  }, 120_000);

  it("whose handler fails is tried again by the alarm, which wakes the object that was evicted", () =>
    withScope(async (scope) => {
      const server = scope.add(await startServer(merchant), (one) => one.stop());
      // workerd evicts an object that was idle for ten seconds.
      expect(await deliver(server, "evicted-fails-for-13s")).toBe(true);
      await until("the retry", () => times(server, "evicted-fails-for-13s is done") > 0, {
        withinMs: 60_000,
      });
      expect(times(server, "evicted-fails-for-13s begins, attempt")).toBe(2);
      expect(times(server, "the object wakes")).toBe(2);
      expect(times(server, "the alarm rings")).toBe(1);
    }));

  it("whose handler fails is tried again by the alarm after workerd was killed", () =>
    withScope(async (scope) => {
      const first = scope.add(await startServer(merchant), (one) => one.stop());
      expect(await deliver(first, "killed-fails-for-3s")).toBe(true);
      await until("the first attempt", () => times(first, "killed-fails-for-3s begins, attempt 1") > 0);
      await first.stop("SIGKILL");
      const second = scope.add(await startServer(merchant), (one) => one.stop());
      await until("the retry", () => times(second, "killed-fails-for-3s is done") > 0, { withinMs: 60_000 });
      expect(times(second, "the alarm rings")).toBeGreaterThan(0);
    }));

  it("is never lost, wherever workerd is killed, and needs no further request to run", () =>
    withScope(async (scope) => {
      const acknowledged: string[] = [];
      const servers: Server[] = [];
      const start = async (): Promise<Server> => {
        const server = scope.add(await startServer(merchant), (one) => one.stop());
        servers.push(server);
        return server;
      };
      for (let round = 1; round <= 10; round++) {
        const server = await start();
        const before = acknowledged.length;
        const names = Array.from({ length: 40 }, (_, at) => `round-${round}-${at}`);
        const sending = names.map(async (name) => {
          if (await deliver(server, name)) acknowledged.push(name);
          // Kills while others are on their way, a little later each time.
          if (acknowledged.length - before >= round * 3) server.process.kill("SIGKILL");
        });
        await Promise.all(sending);
        await server.stop();
      }
      await start();
      const left = (): readonly string[] =>
        acknowledged.filter((name) => !servers.some((server) => times(server, `${name} is done`) > 0));
      await until("every event to be done", () => left().length === 0, { withinMs: 60_000 }).catch(() => {});
      expect(left()).toEqual([]);
      expect(acknowledged.length).toBeGreaterThan(100);
    }));
});
