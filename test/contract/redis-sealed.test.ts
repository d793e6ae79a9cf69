import { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import type { InboxFixture } from "./inbox-processes.ts";
import { redisInboxFixture, redisKind } from "./redis-inbox-fixture.ts";
import { sealedFixture } from "./sealed-fixture.ts";

const scope = new Scope();
let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start(scope);
});
afterAll(() => scope.close());

const make = (): InboxFixture =>
  sealedFixture(redisInboxFixture(() => new Redis(server.url, { lazyConnect: true })));

inboxContract("Redis with a seal", make, redisKind, { cases: casesOfSlowStores, concurrent: true });
