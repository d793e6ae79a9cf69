import { createReceiver, type Receiver } from "@payhooks/core";
import { sharedReceiver } from "@payhooks/core/adapter";
import { redisInbox } from "@payhooks/core/redis";
import { describe, expect, it } from "vitest";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { withScope } from "../faults/harness/scope.ts";
import { CANARY, canariesIn, thrownBy } from "../security/canaries.ts";
import { collectOutput } from "../security/output.ts";
import { silent } from "../support/silent.ts";

const options = { leaseMs: 600, commandTimeoutMs: 500, logger: silent };

describe("an error of Redis", { timeout: 60_000 }, () => {
  it.each([
    // It takes the ends of runs all the same.
    ["that is full", false, (server: RedisServer) => server.tell("CONFIG", "SET", "maxmemory", "1")],
    [
      "that refuses writes",
      true,
      (server: RedisServer) => server.tell("CONFIG", "SET", "min-replicas-to-write", "9"),
    ],
    ["that died", true, (server: RedisServer) => server.kill()],
    [
      "that forbids scripts",
      true,
      (server: RedisServer) => server.tell("ACL", "SETUSER", "default", "-evalsha", "-eval"),
    ],
  ])("is reported without the data that Redis was given, by one %s", (_, failsInside, fail) =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope, { aof: "none" });
      const inbox = redisInbox(server.url, options);
      const output = await collectOutput({ inbox, failsInside, fail: () => fail(server) });
      expect(canariesIn(output)).toEqual([]);
    }),
  );
});

describe("the password of Redis", { timeout: 60_000 }, () => {
  it("is in no error of a server that refuses it, and nowhere in globalThis while it is used", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope, { aof: "none" });
      await server.tell("CONFIG", "SET", "requirepass", CANARY.redisPassword);
      const wrong = `redis://:${CANARY.clientSecret.replaceAll("/", "%2F")}@127.0.0.1:${server.port}`;
      expect(canariesIn([await thrownBy(() => redisInbox(wrong, options).ready())])).toEqual([]);

      const inbox = redisInbox(`redis://:${CANARY.redisPassword}@127.0.0.1:${server.port}`, options);
      const make = (): Receiver =>
        createReceiver({ connect: { secret: CANARY.webhookSecret }, inbox, logger: silent });
      const receiver = sharedReceiver(make, crypto.randomUUID())();
      scope.add(receiver, (one) => one.close({ graceMs: 0 }));
      receiver.onSettlementApproved(() => {});
      await receiver.start();
      expect(await receiver.health()).toMatchObject({ ok: true });
      const kept = Object.getOwnPropertySymbols(globalThis).filter(({ description }) =>
        description?.startsWith("payhooks"),
      );
      const home = globalThis as unknown as Readonly<Record<symbol, unknown>>;
      expect(kept.length).toBeGreaterThan(1);
      expect(canariesIn([...kept.map((symbol) => ({ kept: home[symbol] })), receiver, inbox])).toEqual([]);
    }));
});
