/** Proves the histories: every store with a mistake is found by one of the first histories. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RecordStore } from "../../../packages/core/src/inbox/contract/store.ts";
import { memoryStore } from "../../../packages/core/src/memory/store.ts";
import { hasRedis } from "../../../scripts/redis-server.mjs";
import { RedisServer } from "../../faults/harness/redis-server.ts";
import { Scope } from "../../faults/harness/scope.ts";
import { findDifference } from "./find.ts";
import { memoryKind, simulatedKind, sqliteKind } from "./kinds.ts";
import { type MemoryMutant, memoryMutants, scriptMutants, sqlMutants, withSqlMutant } from "./mutants.ts";
import { scriptedRedisKind } from "./redis-kinds.ts";
import { handMovedClock, type Kind } from "./world.ts";

/** Not more than are played on the real stores. */
const HISTORIES = 60;
const FROM = 1;

const foundAfter = new Map<string, number>();

async function expectFound(name: string, kind: Kind): Promise<void> {
  const found = await findDifference(FROM, HISTORIES, [simulatedKind, kind]);
  if (found === null) expect.fail(`${HISTORIES} histories do not show that ${kind.name} ${name}.`);
  foundAfter.set(`${kind.name} ${name}`, found.histories);
}

function mutatedMemory(change: MemoryMutant["change"]): Kind {
  return {
    ...memoryKind,
    make() {
      const { clock, setTime } = handMovedClock();
      const store = memoryStore({ clock, maxRecords: 1_000 });
      const mutant = Object.create(store, Object.getOwnPropertyDescriptors(change(store))) as RecordStore;
      return { connect: () => mutant, setTime, close() {} };
    },
  };
}

afterAll(() => console.table(Object.fromEntries(foundAfter)));

describe("a memory store that", () => {
  for (const { name, change } of memoryMutants) it(name, () => expectFound(name, mutatedMemory(change)));
});

describe("an SQLite store that", { timeout: 60_000 }, () => {
  for (const mutant of sqlMutants) {
    it(mutant.name, async () => {
      let changed = 0;
      await expectFound(
        mutant.name,
        sqliteKind((handle) => withSqlMutant(handle, mutant, () => changed++)),
      );
      expect(changed, "changed statements").toBeGreaterThan(0);
    });
  }
});

describe.skipIf(!hasRedis())("a Redis store that", { timeout: 60_000 }, () => {
  const scope = new Scope();
  let client: Redis;
  beforeAll(async () => {
    const server = await RedisServer.start(scope, { aof: "none" });
    client = scope.add(new Redis(server.url), (one) => one.disconnect());
  });
  afterAll(() => scope.close());

  for (const { name, from, to } of scriptMutants) {
    it(name, async () => {
      let changed = 0;
      const kind = scriptedRedisKind(client, (script) => {
        if (script.includes(from)) changed++;
        return script.replaceAll(from, to);
      });
      await expectFound(name, kind);
      expect(changed, "changed scripts").toBeGreaterThan(0);
    });
  }
});
